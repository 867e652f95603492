"""`Model.compare_to`, its page, and `thresher inspect --against`."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import thresher
from support.files import called
from support.pages import HOSTILE, parsed, section
from support.training_cases import trained
from thresher.model.model import Model, Output
from thresher.model.model_changes import Change


def made(*rows, names=None, classes=("no", "yes"), width=None, loss="logistic", **rest):
    """Return a model with these weights {feature: weight}, one dict for each output."""
    outputs = []
    for row in rows:
        keys = np.array(sorted(row), np.uint64)
        outputs.append(Output(keys, np.array([row[int(k)] for k in keys]), 0.5))
    classes = None if classes is None else np.array(classes)
    return Model.of(
        outputs, n_features=width or 50, loss=loss, classes=classes, names=names, **rest
    )


BEFORE = {1: 1.0, 2: -2.0, 3: 0.5, 5: 4.0}
AFTER = {1: 1.0, 2: 0.25, 3: 0.75, 4: -7.0, 6: 0.1}


def test_by_number():
    changes = made(AFTER).compare_to(made(BEFORE))
    assert changes.by == "number"
    assert changes.came == (Change(4, 0.0, -7.0), Change(6, 0.0, 0.1))
    assert changes.went == (Change(5, 4.0, 0.0),)
    assert changes.turned == (Change(2, -2.0, 0.25),)
    assert changes.moved == (Change(3, 0.5, 0.75),)
    assert changes.unchanged == 1
    assert changes.turned[0].difference == 2.25
    lines = repr(changes).splitlines()
    assert lines[0] == "features matched by number; 1 weights are equal"
    assert lines[1:4] == ["2 came (no weight before)", "  4  +0 -> -7", "  6  +0 -> +0.1"]
    facts = json.loads(json.dumps(changes.to_dict()))
    assert facts["went"] == [{"name": 5, "before": 4.0, "after": 0.0, "label": None}]
    back = made(BEFORE).compare_to(made(AFTER))
    assert len(back.went) == 2
    same = made(AFTER).compare_to(made(AFTER))
    assert same.came == same.went == same.turned == same.moved == ()
    assert same.unchanged == 5


def test_by_name_if_both_models_have_names():
    names = {1: "a", 2: "b", 3: "c", 5: "e"}
    other = {10: "a", 20: "b", 30: "c", 40: "d", 60: "f"}
    before = made(BEFORE, names=names)
    after = made({10 * k: w for k, w in AFTER.items()}, names=other, width=99)
    changes = after.compare_to(before)
    assert changes.by == "name"
    assert [one.name for one in changes.came] == ["d", "f"]
    assert [one.name for one in changes.turned] == ["b"]
    assert changes.unchanged == 1
    with pytest.raises(thresher.ParameterError, match="50 and 99 features, and not all of them"):
        after.compare_to(made(BEFORE))
    read = {"first": 1, "bits": None}
    numbered = made(AFTER, width=60, parameters=read)  # of a file whose last feature is another one
    assert numbered.compare_to(made(BEFORE, parameters=read)).by == "number"
    with pytest.raises(thresher.ParameterError, match="50 and 60 features"):
        numbered.compare_to(made(BEFORE, parameters={"first": 0}))
    twice = replace(before, names={1: "a", 2: "a", 3: "c", 5: "e"})
    assert twice.compare_to(made(BEFORE)).by == "number"
    given = made(AFTER).compare_to(made(BEFORE), names=[f"n{k}" for k in range(50)])
    assert [one.name for one in given.went] == ["n5"]


def test_several_classes_are_matched_by_label():
    before = made(BEFORE, {1: 1.0}, {2: 2.0}, classes=["a", "b", "c"])
    after = made({2: 3.0}, {7: 1.0}, AFTER, classes=["c", "d", "a"])
    changes = after.compare_to(before)
    assert (changes.new_labels, changes.old_labels) == (("d",), ("b",))
    assert {(one.name, one.label) for one in changes.moved} == {(2, "c"), (3, "a")}
    assert "classes only now: d" in repr(changes)
    assert "  4 (a)  +0 -> -7" in repr(changes)


def test_models_that_do_not_mean_the_same_are_refused():
    two = made(BEFORE)
    with pytest.raises(thresher.ParameterError, match="classes and the other one numbers"):
        two.compare_to(made(BEFORE, classes=None, loss="squared"))
    with pytest.raises(thresher.ParameterError, match="must be the same, in the same order"):
        two.compare_to(made(BEFORE, classes=["yes", "no"]))
    with pytest.raises(thresher.ParameterError, match="any number of labels"):
        two.compare_to(made(BEFORE, BEFORE, parameters={"multilabel": True}))


def test_the_page(tmp_path):
    names = {1: "a", 2: HOSTILE, 3: "c", 4: "d", 5: "e", 6: "f"}
    changes = made(AFTER, names=names).compare_to(made(BEFORE, names=names))
    changes.report(tmp_path / "page.html", ["yesterday", "today"])
    html = (tmp_path / "page.html").read_text()
    assert "<script>alert" not in html
    title = parsed(html).find(".//h1")
    assert title is not None
    assert title.text == "yesterday \N{RIGHTWARDS ARROW} today"
    assert "alert" in section(html, "turned")
    assert "+0.25" in section(html, "turned")
    assert "-7" in section(html, "came")
    assert "4 " in section(html, "models")
    same = made(AFTER).compare_to(made(AFTER))
    same.report(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    assert "All weights are equal." in section(html, "weights")
    assert section(html, "came") == "Came None."


def test_from_the_shell(tmp_path):
    lines = ["1 1:1 2:1\n", "-1 3:1 4:1\n"] * 50
    (tmp_path / "a.svm").write_text("".join(lines))
    (tmp_path / "b.svm").write_text("".join(["-1 1:1 2:1\n", "1 3:1 4:1\n"] * 50))
    a, _ = trained(tmp_path, "a.svm", name="a.thresher")
    b, _ = trained(tmp_path, "b.svm", name="b.thresher")
    page = tmp_path / "page.html"
    shown = called("inspect", b, "--against", a, "--html", page).stdout
    assert "4 changed sign" in shown
    assert shown.rstrip().endswith(f"page -> {page}")
    assert "a.thresher \N{RIGHTWARDS ARROW} b.thresher" in page.read_text()
    facts = json.loads(called("inspect", b, "--against", a, "--json").stdout)
    assert {one["name"] for one in facts["turned"]} == {1, 2, 3, 4}  # as in the files
    told = called("inspect", b, "--against", a, "--why", "1", code=2).stderr
    assert told == "--against cannot be used with --why, --class or --data\n"
    told = called("inspect", b, "--against", a, "--html", a, code=2).stderr
    assert "is also the file of --html" in told
