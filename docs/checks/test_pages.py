"""The built site: every link leads somewhere, and nothing comes from another host."""

from __future__ import annotations

import re

import pytest

from html_pages import DOCS, SITE, external, pages, target

pytestmark = pytest.mark.skipif(not SITE.exists(), reason="the site is not built: make docs")


def test_all_pages_are_built() -> None:
    sources = [p for p in DOCS.rglob("*") if p.suffix in (".md", ".rst", ".ipynb")]
    for source in sources:
        place = source.relative_to(DOCS)
        if (
            place.parts[0] not in ("_build", "templates")
            and place.as_posix().count("gallery/") == 0
        ):
            assert (SITE / place.with_suffix(".html")) in pages(), place
    assert len(pages()) > 200


def test_internal_links_and_anchors() -> None:
    broken = []
    for page in pages().values():
        for address in page.links | page.loads:
            if external(address) or re.match(r"(mailto|data|javascript):", address):
                continue
            file, anchor = target(page, address)
            if file.is_dir():
                file /= "index.html"
            if not file.exists():
                broken.append((page.file.relative_to(SITE).as_posix(), address, "no file"))
            elif anchor and file in pages() and anchor not in pages()[file].anchors:
                broken.append((page.file.relative_to(SITE).as_posix(), address, "no anchor"))
    assert broken == []


def test_nothing_is_loaded_from_another_host() -> None:
    found = [(p.file.name, a) for p in pages().values() for a in p.loads if external(a)]
    assert found == []
    for sheet in SITE.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        asked = re.findall(r"@import[^;]+|url\(\s*['\"]?([^)'\"]+)", text)
        assert [address for address in asked if external(address)] == [], sheet


def test_external_links_are_listed() -> None:
    where: dict[str, set[str]] = {}
    for page in pages().values():
        for address in filter(external, page.links):
            where.setdefault(address, set()).add(page.file.relative_to(SITE).as_posix())
    lines = [f"{address}\t{' '.join(sorted(on))}" for address, on in sorted(where.items())]
    (DOCS / "_build" / "external_links.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert lines
    assert [address for address in where if not address.startswith(("https://", "http://"))] == []


def test_pictures_are_described() -> None:
    missing = []
    for page in pages().values():
        for picture in page.pictures:
            described = picture.get("alt") or picture.get("aria-hidden") or picture.get("role")
            if not described and "alt" not in picture:
                missing.append((page.file.name, picture.get("src", "")[:80]))
    assert missing == []


def test_search_finds_words_of_every_part() -> None:
    index = (SITE / "searchindex.js").read_text(encoding="utf-8")
    reference = ("api/generated/thresher.FTRLClassifier", "commands/generated/train")
    for page in (
        "quickstart",
        "rules/ftrl",
        "gallery/plot_stability",
        "notebooks/text",
        *reference,
    ):
        assert f'"{page}"' in index


def test_names_in_text_are_links() -> None:
    links = pages()[SITE / "rules" / "ftrl.html"].links
    assert "../api/generated/thresher.FTRLClassifier.html#thresher.FTRLClassifier" in links
    assert "../commands/generated/train.html" in links
    shown = (SITE / "rules" / "ftrl.html").read_text(encoding="utf-8")
    assert ">How good the defaults are</" in shown
    assert ">defaults.md<" not in shown
