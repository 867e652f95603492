"""The page, the JSON and the CSV of a discovery."""

from __future__ import annotations

import csv
import io
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import thresher
from support.pages import HOSTILE, parsed, section
from thresher import FeatureDiscovery
from thresher.discovery.page import page_of
from thresher.discovery.summary import number_text

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 60))
Y = X[:, 3] - X[:, 7] + RNG.logistic(size=1200) > 0


@pytest.fixture(scope="module")
def discovery():
    return FeatureDiscovery(refit=True, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def nothing():
    return FeatureDiscovery(random_state=0).fit(X, RNG.permutation(Y))


def test_the_page_has_all_sections(discovery, tmp_path):
    discovery.report(tmp_path / "page.html", title="Two features")
    html = (tmp_path / "page.html").read_text()
    page = parsed(html)  # also valid XML
    assert page.findtext(".//h1") == "Two features"
    assert "2 of 60 features are selected" in page.findtext(".//p[@class='lead']")
    assert {found.get("id") for found in page.iter("section")} == {
        "section", "features", "in-words", "effect-and-evidence", "false-against-selected",
        "what-was-checked", "what-it-promises", "how-it-was-made",
    }  # fmt: skip
    table = section(html, "features")
    assert "3 raises 1,200" in table
    assert "7 lowers 1,200" in table
    assert "odds of True" in table
    said = section(html, "in-words")
    assert said.count("beyond what the other features explain") == 2
    assert len(page.findall(".//details/summary")) == 2
    assert section(html, "what-was-checked").count(" fine ") == len(discovery.checks_)
    assert "not a statement about causes" in section(html, "what-it-promises")
    how = section(html, "how-it-was-made")
    assert "crossfit: 5 folds" in how
    assert "random_state 0" in how
    assert "expected share of false features at most 0.1" in how
    assert f"thresher {thresher.__version__}" in how


def test_the_charts_show_features_and_expected_false(discovery):
    page = parsed(page_of(discovery))
    volcano = page.find(".//section[@id='effect-and-evidence']")
    dots = volcano.findall(".//figure/svg/circle")
    assert len(dots) == 60
    kinds = [dot.get("class") for dot in dots]
    assert (kinds.count("s0"), kinds.count("s1")) == (1, 1)
    titles = [dot.findtext("title") for dot in dots]
    assert any(title.startswith("3: effect +") for title in titles)
    labels = {text.text for text in volcano.findall(".//figure/svg/text")}
    assert {"3", "7"} <= labels
    curve = page.find(".//section[@id='false-against-selected']")
    assert len(curve.findall(".//polyline")) == 2
    assert "0.1 of the number selected, as asked" in "".join(curve.itertext())


def test_a_limit_of_the_number_is_a_level_line():
    found = FeatureDiscovery(expected_false=1, random_state=0).fit(X, Y)
    html = page_of(found)
    assert "at most 1, as asked" in section(html, "false-against-selected")
    assert "expected number of false features at most 1" in section(html, "how-it-was-made")


def test_a_page_without_selected_features(nothing):
    html = page_of(nothing)
    assert "No feature is selected: the strongest one" in parsed(html).findtext(
        ".//p[@class='lead']"
    )
    assert "These are the strongest ones" in section(html, "features")
    assert parsed(html).find(".//section[@id='in-words']") is None
    fitted = FeatureDiscovery(refit=True, random_state=0).fit(X, np.arange(1200) % 7 == 3)
    assert not len(fitted.selected_)
    assert "weight" not in section(page_of(fitted), "features")
    assert json.loads(nothing.to_json())["features"] == []
    assert nothing.table().startswith("no feature is selected: the strongest one, ")
    assert nothing.table(3).split()[:5] == ["feature", "direction", "rows", "z", "q"]


def test_failed_checks_are_at_the_top():
    order = np.argsort(Y, kind="stable")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = FeatureDiscovery(form="stream", random_state=0).fit(X[order], Y[order])
    html = page_of(found)
    assert "Warning: order of labels: neighbouring rows have similar labels" in section(
        html, "section"
    )
    assert "warning" in section(html, "what-was-checked")


def test_what_was_not_checked_is_not_counted():
    order = np.argsort(Y, kind="stable")
    found = FeatureDiscovery(random_state=0).fit(X[order], Y[order])
    page = page_of(found)
    assert section(page, "what-was-checked").count(" not checked ") == 2
    number = len(found.checks_) - 2
    assert f"{number} of {number}" in section(page, "section")


def test_names_with_html_are_text():
    pandas = pytest.importorskip("pandas")
    names = [HOSTILE if j == 3 else f"column {j}" for j in range(60)]
    found = FeatureDiscovery(random_state=0).fit(pandas.DataFrame(X, columns=names), Y)
    html = page_of(found, HOSTILE)
    assert HOSTILE in section(html, "features")
    assert HOSTILE in section(html, "in-words")
    assert parsed(html).findtext(".//h1") == HOSTILE
    assert "<script>alert" not in html
    assert found.findings()[0].feature in (HOSTILE, "column 7")


def test_groups_and_regression():
    target = 2 * X[:, 3] + RNG.normal(size=1200)
    found = FeatureDiscovery(feature_groups=np.arange(60) // 5, random_state=0).fit(X, target)
    html = page_of(found)
    assert "0 5" in section(html, "groups")
    assert "q of group" in section(html, "features")
    assert "share of false groups" in section(html, "features")
    assert found.table().splitlines()[0].split() == [
        "feature", "direction", "group", "rows", "z", "q", "of", "group",
    ]  # fmt: skip
    one = found.findings()[0]
    assert (one.feature, one.group, type(one.group)) == (3, 0, int)
    assert json.loads(found.to_json())["features"][0]["group"] == 0
    assert next(csv.DictReader(io.StringIO(found.to_csv())))["group"] == "0"
    assert "change of the target in standard deviations" in section(html, "effect-and-evidence")
    facts = json.loads(found.to_json())
    assert facts["selected_groups"][0]["group"] == 0
    assert facts["parameters"]["feature_groups"] == "60 entries"
    decision = found.decision_
    effect = dict(zip(decision.keys.tolist(), decision.effects.tolist(), strict=True))[3]
    assert effect == pytest.approx(2 / target.std(), rel=0.1)
    for feature in (3, 4, 30):  # the group of feature 4 is selected, though it has no effect
        selected = "is selected" if feature < 5 else "is not selected"
        q = f"{found.qvalues_[feature]:.2g}"
        assert f"Its group {feature // 5} {selected}; q of the group is {q}." in found.why(feature)
        assert "of this feature alone" in found.why(feature)


def test_several_classes_are_named():
    labels = np.array(["red", "green", "blue"])[np.argmax(X[:, :3] + RNG.gumbel(size=(1200, 3)), 1)]
    found = FeatureDiscovery(random_state=0).fit(X, labels)
    assert "raises red" in section(page_of(found), "features")
    assert "raises red" in found.table()
    assert json.loads(found.to_json())["classes"] == ["blue", "green", "red"]


def test_many_features_make_a_page_of_bounded_size():
    rows = sp.random(800, 20_000, 0.005, random_state=0, format="csr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = FeatureDiscovery(random_state=0).fit(rows, RNG.integers(2, size=800))
    html = page_of(found)
    assert len(html) < 300_000
    assert "of 19," in section(html, "effect-and-evidence")


def test_many_sentences_come_after_the_charts():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = FeatureDiscovery(expected_false=150, random_state=0).fit(rows, rows.sum(axis=1))
    assert len(found.selected_) > 100
    html = page_of(found)
    assert section(html, "in-words").count("beyond what the other features") == 100
    assert "why() tells of any other" in section(html, "in-words")
    places = [html.index(f'id="{name}"') for name in ("features", "false-against-selected",
                                                      "in-words", "what-was-checked")]  # fmt: skip
    assert places == sorted(places)


def test_numbers_and_labels_are_plain():
    assert [number_text(n) for n in (0.05, 9.4, 182.3, 1821.0)] == ["0.05", "9.4", "182", "1,821"]
    found = FeatureDiscovery(random_state=0).fit(X, Y.astype(float))
    assert type(found.findings()[0].label) is float
    assert "the odds of 1 beyond" in found.why(3)
    assert "in 1 row;" in replace(found.findings()[0], rows=1).sentence(60, 20)


def test_json_and_csv_have_the_same_features(discovery, tmp_path):
    text = discovery.to_json(tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text() == text
    facts = json.loads(text)
    assert facts["n_rows"] == 1200
    assert facts["n_selected"] == 2
    assert facts["random_state"] == facts["parameters"]["random_state"] == 0
    assert "seed" not in facts
    assert facts["expected_false"] == discovery.expected_false_
    assert facts["classes"] == [False, True]
    assert [feature["feature"] for feature in facts["features"]] in ([3, 7], [7, 3])
    assert all(check["fine"] is True for check in facts["checks"])
    lines = list(csv.DictReader(io.StringIO(discovery.to_csv(tmp_path / "r.csv", n=10))))
    assert (tmp_path / "r.csv").read_text() == discovery.to_csv(n=10)
    assert len(lines) == 10
    assert [line["selected"] for line in lines].count("True") == 2
    assert float(lines[0]["z"]) == facts["features"][0]["z"]
    assert lines[5]["weight"] == ""
    assert discovery.table(10).splitlines()[0].endswith("selected")


def test_output_needs_a_fit(tmp_path):
    for method in ("to_json", "to_csv", "table"):
        with pytest.raises(NotFittedError):
            getattr(FeatureDiscovery(), method)()
    with pytest.raises(NotFittedError):
        FeatureDiscovery().report(tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_numbers_are_those_of_the_file(tmp_path):
    lines = [
        f"{int(y)} " + " ".join(f"{j + 1}:{value:.4f}" for j, value in enumerate(row))
        for row, y in zip(X, Y, strict=True)
    ]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    found = FeatureDiscovery(random_state=0).fit(thresher.scan(tmp_path / "rows.svm"))
    assert found.selected_.tolist() == [3, 7]  # columns
    assert {line.split(",")[0] for line in found.to_csv().splitlines()[1:]} == {"4", "8"}
    assert "4 raises" in section(page_of(found), "features")
