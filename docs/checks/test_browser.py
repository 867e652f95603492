"""The main pages in Chromium: layout on two screens, and accessibility in both colour schemes."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from html_pages import SITE

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.skipif(not SITE.exists(), reason="the site is not built: make docs"),
    pytest.mark.skipif(
        BROWSER is None, reason="no browser: install chromium (Debian: apt install chromium)"
    ),
]

PHONE, LAPTOP = (390, 844), (1280, 900)
PAGES = [
    "index.html",
    "quickstart.html",
    "guide/index.html",
    "guide/stability.html",
    "rules/index.html",
    "rules/ftrl.html",
    "rules/stabilized.html",
    "examples.html",
    "gallery/index.html",
    "gallery/plot_stability.html",
    "notebooks/text.html",
    "interactive/index.html",
    "api/index.html",
    "api/estimators.html",
    "api/generated/thresher.FTRLClassifier.html",
    "api/generated/thresher.stability.kappa.html",
    "commands/index.html",
    "commands/generated/train.html",
    "coming_from/scikit_learn.html",
    "faq.html",
    "theory.html",
    "defaults.html",
    "speed.html",
    "changelog.html",
    "search.html?q=ftrl",
]


class _Server(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site on this machine."""
    handler = functools.partial(_Server, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def contexts() -> Iterator[Any]:
    """A function that gives a context of the browser for a size and a colour scheme."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )

        @functools.cache
        def context(size: tuple[int, int], scheme: str) -> Any:
            screen = {"width": size[0], "height": size[1]}
            made = started.new_context(viewport=screen, color_scheme=scheme)
            made.set_default_timeout(20_000)
            return made

        yield context
        started.close()


@functools.cache
def axe() -> str:
    """Return the script of axe-core."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe-playwright-python is not installed: make docs")
    return Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8")


def opened(context: Any, address: str, page: str) -> tuple[Any, list[str]]:
    """Return a page of the browser, and what went wrong while it was loaded."""
    shown, wrong = context.new_page(), []
    shown.on("request", lambda r: r.url.startswith((address, "data:")) or wrong.append(r.url))
    shown.on("response", lambda r: r.status < 400 or wrong.append(f"{r.status} {r.url}"))
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.goto(address + page, wait_until="load")
    if "?" in page:
        shown.locator("#search-results li").first.wait_for()
    return shown, wrong


# Elements wider than the screen that are not in a box that scrolls.
WIDE = """() => [...document.querySelectorAll('main *, header *')].filter(e => {
  const box = e.getBoundingClientRect();
  if (box.width === 0 || box.right <= innerWidth + 1 || !e.checkVisibility()) return false;
  for (let p = e; p; p = p.parentElement)
    if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).map(e => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "dark"), (LAPTOP, "light")], ids=str)
def test_page(contexts: Any, address: str, page: str, size: tuple[int, int], scheme: str) -> None:
    shown, wrong = opened(contexts(size, scheme), address, page)
    assert wrong == []
    assert shown.evaluate("document.documentElement.dataset.theme") == scheme
    assert shown.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert shown.evaluate(WIDE) == []
    assert severe(shown) == []
    shown.close()


@pytest.mark.parametrize("page", PAGES[:6])
@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "light"), (LAPTOP, "dark")], ids=str)
def test_contrast_in_the_other_scheme(
    contexts: Any, address: str, page: str, size: tuple[int, int], scheme: str
) -> None:
    shown, _ = opened(contexts(size, scheme), address, page)
    assert severe(shown) == []
    shown.close()


def severe(shown: Any) -> list[tuple[str, list[str]]]:
    """Return the serious and critical violations that axe finds on a page."""
    shown.evaluate(axe())
    found = shown.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_search_finds_a_page(contexts: Any, address: str) -> None:
    shown, _ = opened(contexts(LAPTOP, "light"), address, "search.html?q=checkpoint")
    found = shown.locator("#search-results li > a", has_text="Files and resume")
    found.first.wait_for()
    found.first.click()
    shown.get_by_role("heading", name="Files and resume").wait_for()
    shown.close()
