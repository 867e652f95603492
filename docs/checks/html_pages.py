"""The pages of the built site: their links, anchors, and what they load."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parents[1]
SITE = DOCS / "_build" / "html"


@dataclass
class Page(HTMLParser):
    """What a page links to and loads.

    Parameters
    ----------
    file : Path
    """

    file: Path
    links: set[str] = field(default_factory=set)
    loads: set[str] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)
    pictures: list[dict[str, str | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read the file."""
        super().__init__(convert_charrefs=True)
        self.feed(self.file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag refers to."""
        found = dict(attrs)
        for name in ("id", "name"):
            if found.get(name) and tag != "meta":
                self.anchors.add(str(found[name]))
        if tag == "a" and found.get("href"):
            self.links.add(str(found["href"]))
        elif tag == "link" and found.get("rel") in (
            "stylesheet",
            "icon",
            "preload",
            "modulepreload",
        ):
            self.loads.add(str(found["href"]))
        elif tag in ("script", "img", "iframe", "source", "video", "object", "embed"):
            if source := found.get("src") or found.get("data"):
                self.loads.add(source)
            for part in (found.get("srcset") or "").split(","):
                self.loads |= {part.split()[0]} if part.strip() else set()
        if tag == "img":
            self.pictures.append(found)


@functools.cache
def pages() -> dict[Path, Page]:
    """Return all pages, by file."""
    files = sorted(file for file in SITE.rglob("*.html") if "_static" not in file.parts)
    return {file: Page(file) for file in files}


def external(address: str) -> bool:
    """Return whether an address is on another host."""
    return urlsplit(address).scheme in ("http", "https", "ftp") or address.startswith("//")


def target(page: Page, address: str) -> tuple[Path, str]:
    """Return the file and the anchor that an address of the site means."""
    parts = urlsplit(address)
    file = page.file if not parts.path else page.file.parent / unquote(parts.path)
    return file.resolve(), unquote(parts.fragment)
