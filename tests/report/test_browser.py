"""Pages in a real browser: layout, requests, sorting and searching."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification

from support.files import called
from thresher import (
    FeatureDiscovery,
    FTRLClassifier,
    SparsityPath,
    StabilizedClassifier,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
    compare,
    evaluate,
)
from thresher.report.page import Section, page
from thresher.report.tables import TableCell, table

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no browser: install chromium (Debian: apt install chromium)"
)

HOSTILE = "</script><script>window.hurt=1</script><img src=x onerror=window.hurt=1>"
PHONE, LAPTOP = (390, 844), (1280, 800)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )
        yield functools.cache(functools.partial(_context, started))
        started.close()


def _context(started: Any, width: int, height: int, scheme: str) -> Any:
    size = {"width": width, "height": height}
    context = started.new_context(viewport=size, color_scheme=scheme)
    context.set_default_timeout(10_000)
    return context


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of all kinds of models, and other pages, by name."""
    folder = tmp_path_factory.mktemp("pages")
    X, y = make_classification(400, 60, n_informative=12, random_state=0)
    names = [HOSTILE, "a very long name " * 20, *(f"word{j}" for j in range(58))]
    made: dict[str, Any] = {
        "stabilized": (StabilizedClassifier(random_state=0).fit(X, y), (X, y), names),
        "regression": (
            TruncatedGradientRegressor(eta0=0.001, random_state=0).fit(X, y * 1.0, eval_set=(X, y)),
            (X, y * 1.0),
            names,
        ),
        "classes": (
            FTRLClassifier(random_state=0).fit(X, np.arange(400) % 20),
            (X, np.arange(400) % 20),
            names,
        ),
        "labels": (FTRLClassifier(random_state=0).fit(X, (X[:, :4] > 0).astype(int)), (), names),
        "hashed": (
            FTRLClassifier(store="hashed", random_state=0).fit(X, np.where(y, HOSTILE, "no")),
            (),
            None,
        ),
        "path": (
            SparsityPath(TruncatedGradientClassifier(eta0=0.1, random_state=0), cv=3)
            .fit(X, y)
            .best_estimator_,
            (),
            None,
        ),
    }
    with pytest.warns(UserWarning, match="all weights are zero"):
        empty = TruncatedGradientClassifier(gravity=1e3, random_state=0).fit(X, y)
    made["empty"] = (empty, (X, y), names)
    found = {}
    for name, (estimator, rows, feature_names) in made.items():
        found[name] = folder / f"{name}.html"
        estimator.model_.report(found[name], *rows, names=feature_names, title=f"{name} {HOSTILE}")
    (folder / "rows.svm").write_text("\n".join(f"{i % 2} {1 + i % 7}:1 9:0.5" for i in range(200)))
    found["changes"] = folder / "changes.html"
    changes = made["stabilized"][0].model_.compare_to(empty.model_, names=names)
    changes.report(found["changes"], [HOSTILE, "a very long name " * 20])
    found["tune"] = folder / "tune.html"
    called("tune", folder / "rows.svm", "-m", folder / "m", "--grid", "l1=0.1..10:4", "--html",
           found["tune"])  # fmt: skip
    found["comparison"] = folder / "comparison.html"
    compared = compare(X, np.where(y, HOSTILE, "no"), orders=2, folds=2)
    compared.about["data"] = HOSTILE
    compared.save(found["comparison"])
    found["discovery"] = folder / "discovery.html"
    many = np.hstack([X[:, :1], np.random.default_rng(0).normal(size=(400, 300))])
    frame = pd.DataFrame(many, columns=[*names[:2], *(f"word{j}" for j in range(299))])
    with pytest.warns(UserWarning, match="number of rows"):
        discovery = FeatureDiscovery(expected_false=5, random_state=0).fit(frame, y)
    discovery.report(found["discovery"], f"discovery {HOSTILE}")
    found |= {name: folder / f"{name}.html" for name in ("evaluation", "confusion", "two-models")}
    labels = np.where(y, HOSTILE, "a very long label " * 12)
    good, bad = (FTRLClassifier(l1=l1, random_state=0).fit(X, labels) for l1 in (0, 50))
    evaluate(good, X, labels).report(found["evaluation"], f"evaluation {HOSTILE}")
    evaluate(good, X, labels, against=bad).report(found["two-models"])
    evaluate(made["classes"][0], X, np.arange(400) % 20).report(found["confusion"])
    return found


class Opened:
    """A page in the browser, with its requests, errors and console messages."""

    def __init__(self, browser: Any, file: Path, size: tuple[int, int], scheme: str) -> None:
        self.page = browser(*size, scheme).new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *_: object) -> None:
        self.page.close()


def column(shown: Any, number: int) -> list[str]:
    """Return the visible texts of a column of the table of features."""
    rows = shown.locator("#features tbody tr:visible")
    return list(rows.locator(f"td:nth-child({number})").all_inner_texts())


KINDS = [
    *("stabilized", "regression", "classes", "labels", "hashed", "path", "empty", "tune"),
    *("comparison", "discovery", "evaluation", "confusion", "two-models", "changes"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_pages_fit_laptop_and_phone_and_make_no_requests(browser, pages, kind):
    backgrounds = []
    for size, scheme in ((LAPTOP, "light"), (PHONE, "dark")):
        opened = Opened(browser, pages[kind], size, scheme)
        with opened as shown:
            assert shown.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert shown.evaluate("window.hurt") is None
            assert shown.locator("img").count() == 0
            for figure in shown.locator("figure > svg").all():
                box = figure.bounding_box()
                assert box["width"] > 250
                assert box["height"] > 120
            assert shown.locator("figure > svg").count() >= (0 if kind == "empty" else 1)
            assert shown.locator("h1").is_visible()
            backgrounds.append(shown.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert opened.problems == []
        assert opened.requests == [pages[kind].as_uri()]
    assert backgrounds[0] != backgrounds[1]


@pytest.mark.parametrize("size", [PHONE, LAPTOP])
def test_labels_of_a_comparison_do_not_overlap(browser, pages, size):
    with Opened(browser, pages["comparison"], size, "light") as shown:
        mark = " \N{LARGE CIRCLE}"
        names = shown.locator("#results td:first-child").all_inner_texts()
        ringed = [name.removesuffix(mark) for name in names if name.endswith(mark)]
        drawn = {text.text_content(): text for text in shown.locator("figure > svg > text").all()}
        assert ringed
        assert set(ringed) <= set(drawn)
        boxes = [
            box.bounding_box() for label, box in drawn.items() if {label, label + mark} & {*names}
        ]
        dots = [
            dot.bounding_box() for dot in shown.locator("figure > svg > circle:not(.ring)").all()
        ]
        for number, box in enumerate(boxes):
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size[0]
            assert [other for other in (*boxes[:number], *dots) if _cover(box, other)] == [], box


def _cover(one: dict[str, float], other: dict[str, float]) -> bool:
    return all(
        min(one[at] + one[long], other[at] + other[long]) - max(one[at], other[at]) > spare
        for at, long, spare in (
            ("x", "width", 1),
            ("y", "height", 5),
        )  # a line is above its letters
    )


def test_table_sorts_by_click_and_by_keyboard(browser, pages):
    with Opened(browser, pages["stabilized"], LAPTOP, "light") as shown:
        weights = [float(text) for text in column(shown, 3)]
        assert len(weights) > 5
        assert weights == sorted(weights, key=abs, reverse=True)
        head = shown.locator("#features th", has_text="weight")
        assert head.get_attribute("aria-sort") == "none"
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        assert [float(text) for text in column(shown, 3)] == sorted(weights, reverse=True)
        head.locator("button").focus()
        shown.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        assert [float(text) for text in column(shown, 3)] == sorted(weights)
        names = shown.locator("#features th", has_text="feature")
        names.locator("button").click()
        assert names.get_attribute("aria-sort") == "ascending"
        assert head.get_attribute("aria-sort") == "none"
        numbers = [int(text[4:]) for text in column(shown, 2) if text.startswith("word")]
        assert numbers == sorted(numbers)  # word2 before word10
        shown.locator("#features th", has_text="rank").locator("button").click()
        shown.locator("#features th", has_text="rank").locator("button").click()
        assert [float(text) for text in column(shown, 3)] == weights


def test_search_hides_other_lines_and_counts_those_found(browser, pages):
    with Opened(browser, pages["regression"], PHONE, "light") as shown:
        every = column(shown, 2)
        search, count = shown.locator("#features input"), shown.locator("#features output")
        assert count.inner_text() == f"{len(every)} lines"
        search.fill("word1")
        matching = [name for name in every if "word1" in name]
        assert column(shown, 2) == matching
        assert 0 < len(matching) < len(every)
        assert count.inner_text() == f"{len(matching)} of {len(every)} lines"
        search.fill("no such feature")
        assert column(shown, 2) == []
        search.fill("")
        assert column(shown, 2) == every


def test_names_with_html_are_shown_as_text(browser, pages):
    with Opened(browser, pages["regression"], LAPTOP, "light") as shown:
        assert HOSTILE in column(shown, 2)
        assert shown.title() == f"regression {HOSTILE}"
    with Opened(browser, pages["hashed"], LAPTOP, "light") as shown:
        assert HOSTILE in column(shown, 4)
        assert shown.locator("#model dd", has_text=HOSTILE).count() == 1


def test_a_script_of_a_stranger_does_not_run(browser, tmp_path):
    """The policy of the page holds even if HTML of a name is not escaped."""
    body = "<script>window.hurt=1</script><b onclick='window.hurt=2'>here</b>"
    body += "<img src='data:,' onerror='window.hurt=3'/><img src='https://localhost/x.png'/>"
    file = tmp_path / "hurt.html"
    file.write_text(page("Hurt", [Section("t", body), Section("u", table(["a"], [["x"]]))]))
    opened = Opened(browser, file, LAPTOP, "light")
    with opened as shown:
        shown.locator("b").click()
        assert shown.evaluate("window.hurt") is None
        assert shown.locator("th button").count() == 1  # our own script runs
    assert any("x.png" in p and "Content Security Policy" in p for p in opened.problems)


def test_sorting_a_large_table_puts_missing_numbers_last(browser, tmp_path):
    rows: list[Any] = [
        [f"r{i}", (i * 7919) % 5000, TableCell("x", "yx"[i % 2])] for i in range(4999)
    ]
    rows.append(["none", None, "z" * 400])
    file = tmp_path / "large.html"
    file.write_text(page("Large", [Section("t", table(["a", "b", "c"], rows, search=True))]))
    with Opened(browser, file, LAPTOP, "light") as shown:
        values = "Array.from(document.querySelectorAll('tbody tr'), (r) => r.cells[1].textContent)"
        for reverse in (True, False):
            shown.locator("th", has_text="b").locator("button").click()
            found = shown.evaluate(values)
            assert found[-1] == ""
            assert found[:-1] == [
                f"{n:,}" for n in sorted((r[1] for r in rows[:-1]), reverse=reverse)
            ]
        shown.locator("th", has_text="c").locator("button").click()
        first = min((row for row in rows[1:-1:2]), key=lambda row: row[1])[0]
        assert shown.evaluate("document.querySelector('tbody tr').cells[0].textContent") == first
        assert shown.locator("tbody tr:visible").count() == 300
        shown.locator("button.more").click()
        assert shown.evaluate("document.querySelectorAll('tbody tr[hidden]').length") == 0
        assert not shown.locator("button.more").is_visible()
        shown.locator("input").fill("R4998 x")
        assert shown.locator("tbody tr:visible").count() == 1
        assert shown.locator("output").inner_text() == "1 of 5,000 lines"


def test_a_fragment_does_not_change_the_style_of_a_notebook(browser, pages, tmp_path):
    X, y = make_classification(100, 8, random_state=0)
    fragment = FTRLClassifier(random_state=0).fit(X, y).model_._repr_html_()
    outside = "<table><tr><th>a</th><td>b</td></tr></table><h2>c</h2><pre>d</pre>"
    style = (
        "Array.from(document.querySelectorAll('body > table *, body > h2, body > pre'), (e) =>"
        "{ const s = getComputedStyle(e); return [s.color, s.padding, s.font, s.borderTop]; })"
    )
    found = []
    for number, inside in enumerate(("", fragment)):
        file = tmp_path / f"{number}.html"
        theme = 'data-jp-theme-light="false"'
        file.write_text(f"<!DOCTYPE html><body {theme}>{outside}{inside}</body>")
        opened = Opened(browser, file, LAPTOP, "light")
        with opened as shown:
            found.append(shown.evaluate(style))
            if inside:  # dark, as the theme of the notebook
                background = "getComputedStyle(document.querySelector('.thresher')).backgroundColor"
                assert shown.evaluate(background) == "rgb(18, 22, 27)"
                assert shown.locator("tbody tr").count() >= 8
        assert opened.problems == []
    assert found[0] == found[1]


@pytest.mark.parametrize("size", [PHONE, LAPTOP])
def test_a_discovery_says_its_evidence_on_demand(browser, pages, size):
    with Opened(browser, pages["discovery"], size, "dark") as shown:
        said = shown.locator("#in-words details").first
        assert not said.locator("p").is_visible()
        said.locator("summary").click()
        assert said.locator("p").is_visible()
        assert "beyond what the other features explain" in said.locator("p").inner_text()
        strong = [abs(float(text)) for text in column(shown, 4)]
        assert strong == sorted(strong, reverse=True)
        shown.locator("#features th", has_text="rows").locator("button").click()
        assert shown.locator("#features th", has_text="rows").get_attribute("aria-sort")
