"""The interactive page: its weights, its texts, its data, and how it behaves in a browser."""

from __future__ import annotations

import functools
import html
import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thresher import TruncatedGradientClassifier

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "interactive"

_SPEC = importlib.util.spec_from_file_location("interactive_make", FOLDER / "make.py")
assert _SPEC is not None
assert _SPEC.loader is not None
make = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(make)

NODE = shutil.which("node")
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PHONE, LAPTOP = (390, 844), (1280, 800)

# --- numbers -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    """Return matrix and labels of "train" and "test"."""
    data = make.loaded("newsgroups")
    return {part: make.rows_of(data[part], len(data["words"])) for part in ("train", "test")}


@functools.cache
def learned(gravity: float, period: int, ceiling: float) -> TruncatedGradientClassifier:
    """Return the model of a setting of the first panel, learned by thresher."""
    data = make.loaded("newsgroups")
    return TruncatedGradientClassifier(
        gravity=gravity, period=period, ceiling=ceiling, eta0=1.0, decay=1.0, passes=10,
        shuffle=False, fit_intercept=False, dtype="float64",
    ).fit(*make.rows_of(data["train"], len(data["words"])))  # fmt: skip


SETTINGS = [
    (0.0, 10, np.inf),
    (0.0003, 1, np.inf),
    (0.003, 1, 2.0),
    (0.003, 10, np.inf),
    (0.003, 10, 0.1),
    (0.001, 100, 1.0),
    (0.0003, 500, np.inf),
    (0.003, 500, 0.1),  # rounding
]

PROGRAM = """
require(process.argv[1] + "/learn.js");
require(process.argv[1] + "/newsgroups.js");
const { words, train } = thresher_newsgroups;
const rows = thresher_learn.unpacked(train);
const found = JSON.parse(process.argv[2]).map(([gravity, period, ceiling]) => [
  ...thresher_learn.learn(rows, words.length, {
    gravity, period, ceiling: ceiling === null ? Infinity : ceiling, rate: 1, passes: 10,
  }),
]);
console.log(JSON.stringify(found));
"""


@pytest.mark.skipif(NODE is None, reason="no node: install nodejs")
def test_javascript_learns_the_weights_of_thresher():
    given = [[g, K, None if theta == np.inf else theta] for g, K, theta in SETTINGS]
    done = subprocess.run(
        [str(NODE), "-e", PROGRAM, str(make.STATIC), json.dumps(given)],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert len(found) == len(SETTINGS)
    for setting, weights in zip(SETTINGS, found, strict=True):
        ours = learned(*setting).coef_.ravel()
        assert np.abs(ours - weights).max() < 1e-9, setting
        assert np.array_equal(ours != 0, np.array(weights) != 0), setting
        assert np.count_nonzero(ours) > 10  # something was compared


_TRY = re.compile(
    r'<li><button type="button"\ndata-set="([^"]+)">.*?</button>\n'
    r"([\d,]+) words, error ([\d.]+) %(?:, kappa&nbsp;([\d.]+))?</li>"
)


def tries(panel: str) -> list[tuple[dict[str, str], list[float]]]:
    """Return what a panel proposes to try: settings, and the numbers that it promises."""
    text = (FOLDER / panel).read_text()
    found = [
        (
            dict(pair.split("=") for pair in setting.split()),
            [float(number.replace(",", "")) for number in numbers if number],
        )
        for setting, *numbers in _TRY.findall(text)
    ]
    assert len(found) == text.count("data-set=")
    return found


def test_numbers_in_the_text_on_truncated_gradient(rows):
    for setting, promised in tries("truncated.html"):
        ceiling = float(setting["ceiling"].replace("none", "inf"))
        model = learned(float(setting["gravity"]), int(setting["period"]), ceiling)
        error = 100 * (1 - model.score(*rows["test"]))
        assert [model.model_.nnz, round(error, 1)] == promised, setting


CONTROLS = {
    "size": "target_nnz", "share": "rejection", "rejection": "rejection", "annealing": "annealing",
    "keep": "keep", "gravity": "gravity",
}  # fmt: skip


def test_numbers_in_the_text_on_the_stabilized_rule():
    grid = make.loaded("grid")
    for setting, promised in tries("stabilized.html"):
        wanted = {
            CONTROLS[name]: None if text == "auto" else float(text)
            for name, text in setting.items()
            if name != "rule"
        }
        (point,) = [
            point
            for point in grid[setting["rule"]]
            if all(point[name] == value for name, value in wanted.items())
        ]
        size, error = np.mean(point["nonzeros"]), np.mean(point["error"])
        assert promised[0] == pytest.approx(size, abs=0.51), setting
        assert promised[1] == pytest.approx(error, abs=0.051), setting
        assert promised[2] == pytest.approx(point["kappa"], abs=0.0051), setting


def test_gravity_decides_where_truncated_runs_differ():
    """As the text says: among the largest weights only if there is much gravity."""
    points = {point["gravity"]: point["words"] for point in make.loaded("grid")["truncated"]}
    assert {share for _, _, share in points[0.001]} == {1}
    assert min(share for _, _, share in points[0.01]) < 0.8


def test_the_grid_has_every_setting():
    grid = make.loaded("grid")
    for curve, points in make.settings().items():
        found = [{name: point[name] for name in points[0]} for point in grid[curve]]
        assert found == points
        for point in grid[curve]:
            assert len(point["nonzeros"]) == len(point["error"]) == make.RUNS
            assert 5 <= len(point["words"]) <= make.SHOWN
            assert point["kappa"] is not None


@pytest.mark.parametrize(
    ("curve", "number"), [("truncated", 5), ("robust", 1), ("paper", 40)], ids=str
)
def test_estimators_give_what_the_grid_has(rows, curve, number):
    """Not to the last bit: another processor may round otherwise."""
    recorded = make.loaded("grid")[curve][number]
    params = make.settings()[curve][number]
    for run in (0, 1):
        mine = np.random.default_rng(run).permutation(make.TRAIN)[: make.ROWS_OF_A_RUN]
        X, y = rows["train"]
        fit = make.estimator(curve, params, run).fit(X[mine], y[mine])
        assert fit.model_.nnz == pytest.approx(recorded["nonzeros"][run], rel=0.03)
        error = 100 * (1 - fit.score(*rows["test"]))
        assert error == pytest.approx(recorded["error"][run], abs=1)


@pytest.mark.data
@pytest.mark.soak  # unpacks 14 MB twice
def test_rows_are_those_of_the_archive(data_dir):
    made = make.newsgroups(data_dir / "20news-bydate.tar.xz")
    assert made == make.loaded("newsgroups")


# --- the page ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page in one file."""
    found = tmp_path_factory.mktemp("page") / "interactive.html"
    found.write_text(make.page())
    assert "_static" not in found.read_text()  # everything that it names is in it
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("no browser: install chromium (Debian: apt install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


class Opened:
    """The page in the browser, with what went wrong."""

    def __init__(self, browser: Any, file: Path, size: tuple[int, int], scheme: str) -> None:
        viewport = {"width": size[0], "height": size[1]}
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *_: object) -> None:
        self.context.close()
        assert self.problems == []
        assert len(self.requests) == 1  # the page alone


def readout(panel: Any) -> list[float]:
    """Return the numbers that a panel shows, after the next frame."""
    panel.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return [
        float(text.replace(",", "")) for text in panel.locator(".ti-readout b").all_inner_texts()
    ]


TOO_WIDE = """(width) => [...document.querySelectorAll("*")].filter(
  (element) => element.getBoundingClientRect().right > width + 0.5
).map((element) => element.outerHTML.slice(0, 80))"""
OUTSIDE = """(figure) => {
  const edge = figure.getBoundingClientRect();
  return [...figure.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.left < edge.left - 1 || box.right > edge.right + 1;
  }).map((text) => text.textContent);
}"""


@pytest.mark.parametrize(("size", "scheme"), [(LAPTOP, "light"), (PHONE, "dark")])
def test_the_page_fits_and_is_drawn(browser, file, size, scheme):
    with Opened(browser, file, size, scheme) as shown:
        assert shown.evaluate(TOO_WIDE, size[0]) == []
        figures = shown.locator("figure:visible")
        assert figures.count() == 6
        for figure in figures.all():
            svg = figure.locator("svg")
            assert svg.get_attribute("aria-label")
            assert svg.locator("path.ti-now, circle.ti-now").count() >= 1
            assert figure.bounding_box()["width"] > 250
            assert figure.evaluate(OUTSIDE) == []
        ground = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 30)"}[scheme]
        if spec := importlib.util.find_spec("axe_playwright_python"):
            assert spec.origin is not None
            shown.evaluate(Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
            rules = {} if size == PHONE else {"runOnly": ["color-contrast"]}
            found = shown.evaluate("(rules) => axe.run(document, rules)", rules)["violations"]
            severe = [one["id"] for one in found if one["impact"] in ("serious", "critical")]
            assert severe == []


def test_the_theme_of_the_site_decides_the_colours(browser, file):
    with Opened(browser, file, LAPTOP, "light") as shown:
        ink = "getComputedStyle(document.querySelector('.thresher-interactive')).color"
        assert shown.evaluate(ink) == "rgb(28, 37, 48)"
        shown.evaluate("document.documentElement.dataset.theme = 'dark'")
        assert shown.evaluate(ink) == "rgb(228, 233, 239)"


@pytest.mark.parametrize("panel", ["truncated", "stabilized"])
def test_buttons_show_what_the_text_promises(browser, file, panel):
    with Opened(browser, file, LAPTOP, "light") as shown:
        inside = shown.locator(f"#ti-{panel}")
        for setting, promised in tries(f"{panel}.html"):
            pairs = html.escape(" ".join(f"{name}={text}" for name, text in setting.items()))
            inside.locator(f'button[data-set="{pairs}"]').first.evaluate("(b) => b.click()")
            assert readout(inside) == promised, setting


def test_the_page_works_by_keyboard_and_announces_results(browser, file):
    with Opened(browser, file, PHONE, "light") as shown:
        panel = shown.locator("#ti-truncated")
        before = readout(panel)
        gravity = panel.get_by_role("slider", name="Gravity g")
        gravity.focus()
        shown.keyboard.press("End")
        shown.keyboard.press("ArrowLeft")
        shown.keyboard.press("ArrowLeft")
        shown.keyboard.press("ArrowLeft")
        assert gravity.get_attribute("aria-valuetext") == "0.01"
        assert panel.locator("[data-value-of=gravity]").inner_text() == "0.01"
        after = readout(panel)
        assert after[0] < before[0]
        model = learned(0.01, 10, np.inf).model_
        assert after[0] == model.nnz
        said = panel.get_by_role("status")
        said.get_by_text(f"{model.nnz} of 1,332 words have a weight").wait_for(state="attached")
        drawn = panel.locator("tbody th").all_inner_texts()
        words = make.loaded("newsgroups")["words"]
        assert drawn == [str(word.name) for word in model.top(20, names=words)]

        shown.get_by_label("stabilized, as published").focus()
        shown.keyboard.press("ArrowDown")
        second = shown.locator("#ti-stabilized")
        assert readout(second)[0] == 50
        assert second.locator("#ti-keep").is_hidden()
        shown.get_by_role("slider", name="Number of words").focus()
        shown.keyboard.press("Home")
        assert readout(second)[0] == 5
        assert second.locator("tbody tr").count() >= 5
