"""Reports of models: their content, escaping of names, and files."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import thresher
from support.files import called, svmlight
from support.files import thresher as command
from support.pages import HOSTILE, RNG, SIGNAL, TRUNCATED, TWO, X, parsed, section
from thresher import (
    DataError,
    FTRLClassifier,
    MarginPerceptronClassifier,
    ParameterError,
    SparsityPath,
)
from thresher.report.charts import ChartPoint, histogram, lines, scatter
from thresher.report.model_page import model_page
from thresher.report.tables import TableCell, table


@pytest.fixture(scope="module")
def model() -> Any:
    return TRUNCATED.fit(X, TWO, eval_set=(X[:50], TWO[:50])).model_


# ---- content -------------------------------------------------------------------------------------


def test_the_page_describes_the_model_and_its_training(model, tmp_path):
    page = tmp_path / "report.html"
    assert model.report(page, title="Spam or ham") is None
    html = page.read_text()
    root = parsed(html)
    assert root.findtext(".//h1") == "Spam or ham"
    about = section(html, "model")
    for words in ("truncated-gradient", "Langford, Li, Zhang", "logistic", "ham, spam", "gravity"):
        assert words in about
    assert f"{model.history[-1].examples:,}" in about
    assert len(root.findall(".//section[@id='learning']//figure")) == 2
    assert "validation loss" in section(html, "learning")
    assert "This model is not from a search. SparsityPath" in section(html, "frontier")
    assert "single precision" in section(html, "health")
    assert "no sign in the records of training" in section(html, "health")
    assert "This model has no certificates" in section(html, "certificates")
    assert root.find(".//section[@id='rows']") is None
    assert not re.search(r"https?:|url\(|src=|@import", html)


def test_the_policy_allows_only_the_script_of_the_page(model):
    html = model_page(model)
    (script,) = re.findall("<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = parsed(html).find(".//meta[@http-equiv='Content-Security-Policy']").get("content")
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}';")
    assert html.index("Content-Security-Policy") < html.index("<style>")


def test_features_are_the_largest_first_with_their_names(model):
    html = model_page(model, names=[f"word {j}" for j in range(20)])
    rows = parsed(html).findall(".//section[@id='features']//tbody/tr")
    cells = [["".join(cell.itertext()) for cell in row] for row in rows]
    top = model.top(len(cells))
    assert len(cells) == model.nnz
    assert [line[1] for line in cells] == [f"word {feature.name}" for feature in top]
    assert [line[2] for line in cells] == [f"{feature.weight:+.4g}" for feature in top]
    assert [line[3] for line in cells] == ["spam" if f.weight > 0 else "ham" for f in top]


def test_a_model_that_has_seen_one_class_has_a_page():
    learner = thresher.OnePassClassifier().learn_one({"a": 1.0}, "yes").learn_one({"b": 2.0}, "yes")
    page = model_page(learner.model_)
    assert "positive weights indicate the class" in page


def test_the_table_of_weights_has_at_most_2000_lines():
    wide = FTRLClassifier(l1=0.0, random_state=0).fit(
        RNG.normal(size=(60, 2500)), np.arange(60) % 2
    )
    html = model_page(wide.model_)
    rows = parsed(html).findall(".//section[@id='features']//tbody/tr")
    assert len(rows) == 2000
    assert "The 2,000 largest of 2,500 nonzero weights; 500 more are not shown" in html


def test_names_can_be_given_to_a_model(model, tmp_path):
    named = model.named([f"word {j}" for j in range(20)])
    assert "word 7" not in model._repr_html_()
    assert "word 7" in named._repr_html_()
    named.save(tmp_path / "m")
    assert thresher.load(tmp_path / "m").top(3) == named.top(3)
    np.testing.assert_array_equal(named.predict(X), model.predict(X))
    with pytest.raises(ParameterError, match="names must be 20"):
        model.named(["a"])


def test_the_page_states_certificates_in_words():
    model = MarginPerceptronClassifier(random_state=0).fit(X, TWO).model_
    said = section(model_page(model), "certificates")
    for certificate in model.certificates:
        assert (certificate.statement if certificate.available else certificate.reason) in said
    assert "Assumptions:" in said


# ---- escaping ------------------------------------------------------------------------------------


def test_all_names_are_escaped(tmp_path):
    names = [HOSTILE, "\x00\x1b\ud800", *map(str, range(18))]
    y = np.where(SIGNAL > 0, HOSTILE, "ham")
    path = SparsityPath(TRUNCATED, [1e-4, 1e-2], cv=2).fit(X, y)
    place = path.best_estimator_.model_.frontier
    dots = tuple(replace(dot, name=HOSTILE) for dot in place.dots)
    model = replace(
        path.best_estimator_.model_,
        frontier=replace(place, dots=dots, measure=HOSTILE),
        names=dict(enumerate(names)),
        parameters={"rule": HOSTILE, "dtype": HOSTILE, HOSTILE: HOSTILE, "format": HOSTILE},
    )
    html = model_page(model, X, y, names=names, title=HOSTILE, file=f"{HOSTILE}.thresher")
    assert html.count("<script") == html.count("</script") == 1
    assert 'alert("1")' not in html
    root = parsed(html)
    assert HOSTILE in section(html, "features")
    assert HOSTILE in section(html, "frontier")
    assert root.findtext(".//h1") == root.findtext(".//title") == HOSTILE
    turned = model_page(model, names=["\u202eevil\u2066", "", "  ", *map(str, range(17))])
    assert r"\u202eevil\u2066" in turned
    assert r"\x00\x1b\ud800" in section(html, "features")
    assert "''" in section(turned, "features")
    assert "' '" in section(turned, "features")
    fragment = model._repr_html_()
    assert "<script" not in fragment
    assert ET.fromstring(fragment).get("class") == "thresher"


# ---- files ---------------------------------------------------------------------------------------


def test_an_error_leaves_the_old_file_unchanged(model, tmp_path):
    page = tmp_path / "report.html"
    page.write_text("before")
    with pytest.raises(ParameterError, match=r"names must be 20, one for each feature; got 2"):
        model.report(page, names=["a", "b"])
    with pytest.raises(ParameterError, match="y must be given with X"):
        model.report(page, y=TWO)
    with pytest.raises(
        ParameterError, match="y must have 300 labels, one for each row of X; got 299"
    ):
        model.report(page, X, TWO[1:])
    with pytest.raises(DataError, match="no row has a label that the model knows"):
        model.report(page, X, np.full(len(TWO), "eggs"))
    with pytest.raises(ValueError, match="X must have 20 columns"):
        model.report(page, X[:, 1:], TWO)
    for rows in ((X[:0], TWO[:0]), (X[:0],)):
        with pytest.raises(DataError, match="X has no rows"):
            model.report(page, *rows)
    assert page.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="No such file"):
        model.report(tmp_path / "no" / "report.html")
    with pytest.raises(OSError, match="directory"):
        model.report(tmp_path)
    model.report(page)
    assert page.read_text().endswith("</html>\n")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_models_and_pages_need_neither_scikit_learn_nor_scipy(model, tmp_path):
    model.save(tmp_path / "m")
    code = (
        "import sys, thresher; model = thresher.load('m'); model.report('r.html');"
        "print([m for m in sys.modules if m.split('.')[0] in ('sklearn', 'scipy', 'pandas')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# ---- usage examples ------------------------------------------------------------------------------


def trained(kind: str, folder: Path) -> None:
    """Train a model on rows of a kind; write rows and model to the folder."""
    rows = folder / {"vw": "rows.vw", "bits": "rows.vw", "csv": "rows.csv"}.get(kind, "rows.svm")
    options: list[str] = []
    if kind in ("vw", "bits"):
        rows.write_text("1 |ad sport |user anna\n-1 |ad loan |user bert\n" * 50)
        options = ["--bits", "18", "-q", "au"] if kind == "bits" else []
    elif kind == "csv":
        pd.DataFrame({"age": range(50), "city": ["a", "b"] * 25, "y": [0, 1] * 25}).to_csv(
            rows, index=False
        )
    else:
        svmlight(rows)
    if kind == "zero":
        options = ["--zero-based"]
    if kind == "matrix":
        TRUNCATED.fit(sp.csr_matrix(X), TWO).model_.save(folder / "my model.thresher")
    else:
        called("train", rows, "-m", folder / "my model.thresher", *options)


@pytest.mark.parametrize("kind", ["matrix", "vw", "bits", "csv", "svm", "zero"])
def test_usage_examples_run(kind, tmp_path, monkeypatch, capsys):
    trained(kind, tmp_path)
    monkeypatch.chdir(tmp_path)
    called("inspect", "my model.thresher", "--html", "report.html")
    root = parsed((tmp_path / "report.html").read_text())
    python, shell = ("".join(code.itertext()) for code in root.findall(".//pre"))
    assert "'my model.thresher'" in python
    exec(python, {})
    assert "Feature(" in capsys.readouterr().out
    for line in shell.splitlines():
        name, *arguments = shlex.split(line)
        assert name == "thresher"
        called(*arguments)
    assert len((tmp_path / "predictions.txt").read_text().splitlines()) >= 50
    numbered = {"svm": "from 1.", "matrix": "from 1 (", "zero": "from 0."}.get(kind, "")
    assert numbered in section((tmp_path / "report.html").read_text(), "use")


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command")
    svmlight(folder / "rows.svm")
    called("tune", folder / "rows.svm", "-m", folder / "m", "--grid", "l1=0.1..10:3")
    return folder


def test_inspect_writes_the_page(folder):
    page = folder / "report.html"
    done = called("inspect", folder / "m", "--html", page, "--data", folder / "rows.svm")
    assert done.stdout.endswith(f"page -> {page}\n")
    html = page.read_text()
    assert parsed(html).findtext(".//h1") == "m"
    assert "One of 3 models of a search" in section(html, "frontier")
    model, source = thresher.load(folder / "m"), thresher.scan(folder / "rows.svm")
    labels = np.concatenate([block.labels for block in source.blocks()])
    error = float(np.mean(model.predict(source) != labels))
    assert f"400 rows {100 * error:.2f} % error rate" in section(html, "rows")
    first = parsed(html).find(".//section[@id='features']//tbody/tr")
    assert first is not None
    assert "".join(first[1].itertext()) == str(model.top(1)[0].name + 1)  # its number in the file
    facts = json.loads(called("inspect", folder / "m", "--html", page, "--json").stdout)
    assert facts["nonzero weights"] == model.nnz


def test_invalid_options_of_inspect(folder, tmp_path):
    page = tmp_path / "report.html"
    done = called("inspect", folder / "m", "--data", folder / "rows.svm", code=2)
    assert "--data needs --html" in done.stderr
    before = (folder / "m").read_bytes()
    done = called("inspect", folder / "m", "--html", folder / "m", code=2)
    assert "is also the file of --html" in done.stderr
    assert (folder / "m").read_bytes() == before
    data = folder / "rows.svm"
    done = called("inspect", folder / "m", "--html", data, "--data", data, code=2)
    assert "is an input file" in done.stderr
    done = called("inspect", folder / "m", "--html", tmp_path / "no" / "x.html", code=1)
    assert "there is no folder" in done.stderr
    (tmp_path / "three.svm").write_text("3 1:1\n")
    done = called("inspect", folder / "m", "--html", page, "--data", tmp_path / "three.svm", code=1)
    assert "no row has a label that the model knows; the labels are 3.0" in done.stderr
    (tmp_path / "empty.svm").write_text("")
    done = called("inspect", folder / "m", "--html", page, "--data", tmp_path / "empty.svm", code=1)
    assert "there are no rows" in done.stderr
    done = called("inspect", folder / "m", "--html", page, "--why", "99999", code=1)
    done = called("inspect", folder / "m", "--html", page, "--why", "price", code=1)
    assert "has the name 'price'" in done.stderr
    assert not os.path.exists(page)


def test_help_lists_the_options_of_the_page():
    shown = command("inspect", "--help", env={**os.environ, "COLUMNS": "200"}).stdout
    assert "--html" in shown
    assert "--data" in shown


# ---- parts ---------------------------------------------------------------------------------------


def test_charts_skip_points_that_are_not_finite():
    drawn = ET.fromstring(
        lines(
            {"a": [(0, 1.0), (10, float("nan")), (100, 0.5), (1e6, 1e200)], "b": [], "c": [(5, 2)]},
            x="rows", y="loss", log_x=True, title="t",
        )
    )  # fmt: skip
    assert len(drawn.findall("./svg/circle")) == 3
    assert len(drawn.findall(".//span[@class='key']/span")) == 2
    assert "no data to draw" in lines({}, x="x", y="y", title="t")
    assert "no data to draw" in scatter([ChartPoint(float("nan"), 1)], x="x", y="y", title="t")
    assert "no data to draw" in histogram({}, x="x", y="y", title="t")
    points = [
        ChartPoint(0.001, 0.1, "a", "best"),
        ChartPoint(0, 0.2, "b", "on"),
        ChartPoint(5, 0.3, "c <", "s3"),
    ]
    small = ET.fromstring(
        scatter(points, x="%", y="e", log_x=True, title="t", edge=[0, 1], key={"best": "it"})
    )
    places = [float(c.get("cx", "")) for c in small.findall("./svg/circle")]
    assert places[1] < places[0] < places[2]  # zero is left of all others
    for circle in small.findall("./svg/circle"):
        assert 0 <= float(circle.get("cx", "")) <= 640
        assert 0 <= float(circle.get("cy", "")) <= 360


def test_cells_of_tables():
    html = table(
        ["name", "number", ""],
        [["a", 1234, "x"], ["b", TableCell("many", np.float64(2.0)), ""], ["c", None, "<"]],
        caption="a & b",
        marked=[1],
    )
    root = ET.fromstring(html)
    assert [cell.get("data-v") for cell in root.findall(".//td[2]")] == ["1234.0", "2.0", ""]
    assert [cell.text for cell in root.findall(".//td[2]")] == ["1,234", "many", None]
    assert [head.get("class") for head in root.findall(".//th")] == [None, "n", None]
    assert root.findtext(".//caption") == "a & b"
    assert [row.get("class") for row in root.findall(".//tbody/tr")] == [None, "best", None]
    with pytest.raises(ValueError, match="each row must have 2 cells"):
        table(["a", "b"], [["1"]])
