"""The page of a look: valid, complete, and good to read in a browser."""

from __future__ import annotations

import shutil

import pytest

import thresher
from support.files_people_have import KINDS, all_kinds
from support.pages import HOSTILE, parsed, section

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.mark.parametrize("name", all_kinds())
def test_pages_are_valid(tmp_path, name):
    look = thresher.look(KINDS[name](tmp_path).path)
    page = look.html()
    parsed(page)
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    for finding in look.findings:
        assert " ".join(finding.what.split())[1:40] in section(page, "findings")
    if look.command:
        assert "thresher train" in section(page, "suggested-command")


def test_sections(tmp_path):
    page = thresher.look(KINDS["texts_sorted_by_label"](tmp_path).path).html("My data")
    assert "<title>My data</title>" in page
    assert "--shuffle" in section(page, "suggested-command")
    assert "Share of the label 0 along the rows" in section(page, "labels")
    assert "review text" in section(page, "columns")
    page = thresher.look(KINDS["vw_with_namespaces"](tmp_path).path).html()
    assert "user^age" in section(page, "features")


def test_hostile_names_are_escaped(tmp_path):
    path = tmp_path / "hostile.csv"
    name = HOSTILE.replace('"', "'")
    path.write_text(f'"{name}",label\n' + '"<b>x</b>",<i>yes\n"<b>y</b>",<i>no\n' * 30)
    page = thresher.look(path, header=True).html()
    parsed(page)
    assert "<b>x" not in page
    assert "<i>yes" not in page
    assert "<script>alert" not in page


@pytest.mark.skipif(BROWSER is None, reason="no browser: install chromium")
def test_pages_in_a_browser(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pages = {}
    for name in ("parquet_with_types", "label_tab_text", "vw_with_namespaces"):
        pages[name] = tmp_path / f"{name}.html"
        thresher.look(KINDS[name](tmp_path).path).report(pages[name])
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )
        for width, scheme in ((1200, "light"), (390, "dark")):
            context = browser.new_context(
                viewport={"width": width, "height": 844}, color_scheme=scheme
            )
            for path in pages.values():
                tab = context.new_page()
                errors = []
                tab.on("pageerror", lambda error, seen=errors: seen.append(error))
                tab.goto(path.as_uri())
                assert not errors
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                assert tab.locator(".findings, #findings .note").count() >= 1
                tab.close()
            context.close()
        browser.close()
