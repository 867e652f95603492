"""`thresher train --from MODEL`: the model of two runs is that of one run over all rows."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from support.files import called, svmlight, vw
from thresher import Model

PARTS = ("indptr", "indices", "weights", "intercept")


def same_weights(one: Model, other: Model) -> bool:
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in PARTS)


def train(folder: Path, data: Any, name: str, *options: Any) -> Model:
    """Train quietly on a file or its lines; return the model, which is also in the folder."""
    if isinstance(data, list):
        (folder / f"{name}.rows").write_text("".join(data))
        data = folder / f"{name}.rows"
    called("train", data, "-m", folder / name, "--quiet", *options)
    return thresher.load(folder / name)


def in_parts(folder: Path, lines: list[str], cuts: list[int], *options: Any) -> Model:
    """Train on the first lines, then go on with the rest."""
    ends = [*cuts, len(lines)]
    train(folder, lines[: ends[0]], "part0", *options, "--keep-state")
    for number, (begin, end) in enumerate(pairwise(ends), 1):
        more = ["--from", folder / f"part{number - 1}", "--keep-state"]
        train(folder, lines[begin:end], f"part{number}", *more)
    return thresher.load(folder / f"part{len(cuts)}")


# ---- the same bytes ------------------------------------------------------------------------------

RULES = [
    ["--rule", "one-pass"],
    ["--rule", "one-pass", "--lanes", "4", "--loss", "squared"],
    ["--rule", "ftrl", "--alpha", "0.1", "--l1", "0.3"],
    ["--rule", "ftrl", "--alpha", "0.5", "--l1", "2", "--loss", "hinge"],
    ["--rule", "ftrl", "--alpha", "0.1", "--multiclass"],
    ["--rule", "truncated-gradient", "--eta0", "0.1", "--gravity", "0.01", "--period", "3"],
    ["--rule", "adagrad", "--alpha", "0.2", "--l1", "0.01"],
    ["--rule", "forward-backward", "--eta0", "0.1", "--l1", "0.01"],
    ["--rule", "dual-averaging", "--strength", "2", "--l1", "0.01"],
    ["--rule", "averaged-sgd", "--alpha", "0.01"],
    ["--rule", "margin-perceptron", "--margin", "0.5", "--eta0", "0.1"],
]
FORMS: dict[str, list[list[str]]] = {
    "svmlight": [["--store", "dense"], ["--store", "hashed"], ["--bits", "7"]],
    "vw": [["--store", "hashed"], ["--bits", "8"], ["--bits", "8", "-q", "wa"]],
}


@settings(max_examples=40)
@given(data=st.data())
def test_rows_in_parts_give_the_bytes_of_one_run(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    form = data.draw(st.sampled_from(sorted(FORMS)))
    options = [
        *data.draw(st.sampled_from(RULES)),
        *data.draw(st.sampled_from(FORMS[form])),
        *["--dtype", data.draw(st.sampled_from(["float32", "float64"]))],
    ]
    rows = data.draw(st.integers(20, 300))
    many = "--multiclass" in options and form == "svmlight"
    made = (
        svmlight(folder / "rows", rows=rows, classes=(1, 2, 3) if many else (-1, 1))
        if form == "svmlight"
        else vw(folder / "rows", rows=rows)
    )
    lines = made.read_text().splitlines(keepends=True)
    cuts = data.draw(st.lists(st.integers(10, rows - 1), min_size=1, max_size=3, unique=True))
    if many:  # classes that arrive later have not seen the rows before
        named = ["--classes", "1,2,3"]
        options = [*options, *named]
    whole = train(folder, lines, "whole", *options)
    found = in_parts(folder, lines, sorted(cuts), *options)
    assert same_weights(found, whole)
    assert found.history[-1].examples == whole.history[-1].examples == rows
    assert found.parameters["runs"] == 1 + len(cuts)
    assert found.parameters["passes"] == 1
    assert found.n_features == whole.n_features
    if "--bits" not in options:
        assert found.names == whole.names


def test_further_passes_follow_the_first(tmp_path: Path) -> None:
    """A single row more in the first pass, then the second pass over the new rows."""
    lines = svmlight(tmp_path / "rows").read_text().splitlines(keepends=True)
    options = ["--rule", "ftrl", "--alpha", "0.1"]
    train(tmp_path, lines[:200], "first", *options, "--keep-state")
    found = train(tmp_path, lines[200:], "more", "--from", tmp_path / "first", "--passes", "3")
    estimator = thresher.FTRLClassifier(
        alpha=0.1, dtype="float32", passes=1, shuffle=False, warm_start=True, random_state=0
    )
    estimator.fit(thresher.scan(tmp_path / "first.rows"), classes="binary")
    for _ in range(3):
        estimator.partial_fit(thresher.scan(tmp_path / "more.rows"))
    assert found.history[-1].examples == 200 + 3 * 200
    assert found.parameters["passes"] == 3
    np.testing.assert_array_equal(found.weights, estimator.model_.weights)


def test_a_pipe_and_a_cache_go_on(tmp_path: Path) -> None:
    lines = vw(tmp_path / "rows").read_text().splitlines(keepends=True)
    whole = train(tmp_path, lines, "whole")
    train(tmp_path, lines[:150], "first", "--keep-state")
    rest = "".join(lines[150:])
    (tmp_path / "rest").write_text(rest)
    piped = ["train", "-", "--from", tmp_path / "first", "-m", tmp_path / "piped", "--quiet"]
    called(*piped, stdin=rest.encode())
    cached = train(
        tmp_path, tmp_path / "rest", "cached", "--from", tmp_path / "first",
        "--cache", tmp_path / "cache",
    )  # fmt: skip
    assert same_weights(thresher.load(tmp_path / "piped"), whole)
    assert same_weights(cached, whole)
    assert cached.names == whole.names


def test_label_sets_and_new_classes_go_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        f"{','.join(map(str, sorted(set(rng.integers(0, 4, 2).tolist()))))} "
        f"{rng.integers(1, 9)}:1 {rng.integers(9, 20)}:0.5\n"
        for _ in range(200)
    ]
    options = ["--multilabel", "--rule", "forward-backward", "--eta0", "0.1"]
    whole, found = train(tmp_path, lines, "whole", *options), None
    found = in_parts(tmp_path, lines, [120], *options)
    np.testing.assert_array_equal(found.classes, whole.classes)
    np.testing.assert_array_equal(found.weights, whole.weights)
    several = svmlight(tmp_path / "several", classes=(1, 2, 3))
    first = train(tmp_path, several, "three", "--rule", "ftrl", "--multiclass", "--keep-state")
    fourth = [f"{int(line[0]) + 1}{line[1:]}" for line in several.read_text().splitlines(True)]
    more = train(tmp_path, fourth, "four", "--from", tmp_path / "three")
    assert first.classes is not None
    assert more.classes is not None
    assert first.classes.tolist() == [1, 2, 3]
    assert more.classes.tolist() == [1, 2, 3, 4]


def test_tables_keep_their_columns_and_kinds(tmp_path: Path) -> None:
    head = "sold,colour,size\n"
    rows = [f"{n % 3 == 0:d},{'red' if n % 3 else n % 7},{n % 5}.5\n" for n in range(90)]
    options = ["--label", "sold", "--rule", "ftrl", "--alpha", "0.1"]
    for name, part in (("all", rows), ("one", rows[:60]), ("two", rows[60:])):
        (tmp_path / f"{name}.csv").write_text(head + "".join(part))
    whole = train(tmp_path, tmp_path / "all.csv", "whole", *options)
    train(tmp_path, tmp_path / "one.csv", "first", *options, "--keep-state")
    found = train(tmp_path, tmp_path / "two.csv", "more", "--from", tmp_path / "first")
    assert same_weights(found, whole)
    assert found.names == whole.names
    assert found.parameters["kinds"] == whole.parameters["kinds"]


def test_a_model_of_python_goes_on_in_the_shell(tmp_path: Path) -> None:
    """And the model of the shell in Python."""
    lines = svmlight(tmp_path / "rows").read_text().splitlines(keepends=True)
    for name, part in (("one", lines[:150]), ("two", lines[150:])):
        (tmp_path / f"{name}.svm").write_text("".join(part))
    estimator = thresher.FTRLClassifier(alpha=0.1, random_state=0)
    estimator.partial_fit(thresher.scan(tmp_path / "one.svm"), classes=[-1, 1])
    estimator.model_.save(tmp_path / "python", state=True)
    shell = train(tmp_path, tmp_path / "two.svm", "shell", "--from", tmp_path / "python")
    estimator.partial_fit(thresher.scan(tmp_path / "two.svm"))
    assert same_weights(shell, estimator.model_)
    train(
        tmp_path, tmp_path / "one.svm", "first", "--rule", "ftrl", "--alpha", "0.1", "--keep-state"
    )
    loaded = thresher.load(tmp_path / "first").estimator()
    again = train(tmp_path, tmp_path / "two.svm", "again", "--from", tmp_path / "first")
    assert same_weights(loaded.partial_fit(thresher.scan(tmp_path / "two.svm")).model_, again)


# ---- automatic values ----------------------------------------------------------------------------


def test_a_value_that_the_first_rows_gave_stays_and_a_note_says_so(tmp_path: Path) -> None:
    lines = svmlight(tmp_path / "rows").read_text().splitlines(keepends=True)
    first = train(tmp_path, lines[:200], "first", "--rule", "ftrl", "--keep-state")
    scaled = [line.replace(":0.", ":90.") for line in lines[200:]]
    (tmp_path / "rest").write_text("".join(scaled))
    done = called("train", tmp_path / "rest", "--from", tmp_path / "first", "-m", tmp_path / "more")
    alpha = first.parameters["alpha"]
    assert f"alpha stays {alpha:g}, which the first rows gave" in done.stderr
    assert thresher.load(tmp_path / "more").parameters["alpha"] == alpha


def test_a_penalty_for_the_number_of_rows_stays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    estimator = thresher.TruncatedGradientClassifier(gravity="auto", random_state=0)
    estimator.fit(X, X[:, 0] > 0)
    estimator.model_.save(tmp_path / "model", state=True)
    lines = [
        f"{int(row[0] > 0)} " + " ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(row)) + "\n"
        for row in X
    ]
    (tmp_path / "rows").write_text("".join(lines).replace("0 1", "-1 1"))
    estimator = thresher.load(tmp_path / "model").estimator()
    assert estimator.state_.rows == 300
    assert estimator.partial_fit(X, X[:, 0] > 0).state_.rows == 300


# ---- interrupted runs ----------------------------------------------------------------------------


def test_a_killed_run_that_went_on_is_resumed(tmp_path: Path) -> None:
    from training.test_resume import killed

    rows = svmlight(tmp_path / "rows.svm", rows=3000, repeat=4)
    train(tmp_path, rows, "first", "--rule", "ftrl", "--keep-state")
    arguments = [str(rows), "--from", str(tmp_path / "first"), "--passes", "40"]
    whole = train(tmp_path, rows, "whole", *arguments[1:], "--keep-state")
    rng, hits, resumed = random.Random(0), 0, tmp_path / "resumed"
    for attempt in range(8):
        if hits >= 2:
            break
        resumed.unlink(missing_ok=True)
        more = [*arguments, "--keep-state"]
        hits += killed(more, str(resumed), rng.uniform(0, 0.1 / (1 + attempt)))
    assert hits >= 2, "runs ended before they were killed: make them longer"
    done = called("train", rows, "-m", resumed, "--resume", "--quiet", "--keep-state", code=1)
    assert "went on from the model with the state" in done.stderr
    called("train", *arguments, "-m", resumed, "--resume", "--quiet", "--keep-state")
    assert resumed.read_bytes() == (tmp_path / "whole").read_bytes()
    assert whole.history[-1].examples == 12_000 * 41


# ---- what differs --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with rows and models that have a state."""
    folder: Path = tmp_path_factory.mktemp("begun")
    svmlight(folder / "rows.svm")
    vw(folder / "rows.vw")
    svmlight(folder / "three.svm", classes=(1, 2, 3))
    train(folder, folder / "rows.svm", "ftrl", "--rule", "ftrl", "--l1", "2", "--keep-state")
    train(folder, folder / "rows.vw", "bits", "--rule", "ftrl", "--bits", "9", "--keep-state")
    train(folder, folder / "rows.vw", "names", "--keep-state")
    balanced = ["--rule", "ftrl", "--class-weight", "balanced", "--keep-state"]
    train(folder, folder / "rows.svm", "balanced", *balanced)
    train(folder, folder / "rows.svm", "without", "--rule", "ftrl")
    train(folder, folder / "rows.svm", "squared", "--loss", "squared", "--keep-state")
    train(folder, folder / "rows.svm", "solver", "--rule", "coordinate-descent")
    train(folder, folder / "rows.svm", "mirror", "--rule", "mirror-descent", "--keep-state")
    wide = (folder / "rows.svm").read_text() + "1 90:1\n"
    (folder / "wide.svm").write_text(wide)
    return folder


REFUSED: dict[str, tuple[str, str, list[str], str, int]] = {
    "rule": ("rows.svm", "ftrl", ["--rule", "adagrad"],
             "--rule is adagrad, and {} was learned with ftrl; training can only go on with", 2),
    "loss": ("rows.svm", "ftrl", ["--loss", "hinge"],
             "--loss is hinge, and {} was learned with logistic", 2),
    "number": ("rows.svm", "ftrl", ["--l1", "3"],
               "--l1 is 3.0, and {} was learned with 2.0", 2),
    "store": ("rows.svm", "ftrl", ["--store", "hashed"],
              "--store is hashed, and {} was learned with ", 2),
    "bits": ("rows.vw", "bits", ["--bits", "10"],
             "--bits is 10, and {} was learned with 9", 2),
    "interactions": ("rows.vw", "bits", ["-q", "wa"],
                     "--interactions is ('wa',), and {} was learned with ()", 2),
    "numbers": ("rows.svm", "names", [],
                "the features of the rows have numbers, and those of the model have names", 2),
    "names": ("rows.vw", "ftrl", [],
              "the features of the rows have names, and those of the model have numbers", 2),
    "width": ("wide.svm", "mirror", [],
              "the rows have 90 features, and the model has 60", 2),
    "labels": ("three.svm", "ftrl", [],
               "the label 2 is not among the classes -1, 1; a third class cannot be added", 1),
    "classes": ("rows.svm", "ftrl", ["--classes", "a,b"],
                "--classes are a, b, and those of {} are -1, 1", 2),
    "multiclass": ("rows.svm", "squared", ["--multiclass"],
                   "--multiclass is for classes, and {} predicts numbers", 2),
    "auto": ("rows.svm", "ftrl", ["--rule", "auto"],
             "--rule is auto, and {} was learned with ftrl", 2),
    "cluster": ("rows.svm", "ftrl", ["--workers", "0"],
                "--workers cannot be combined with --from", 2),
    "scale": ("rows.svm", "ftrl", ["--scale", "standard"],
              "--scale cannot be combined with --from", 2),
    "balanced": ("rows.svm", "balanced", [],
                 "--class-weight balanced counts the classes of all rows, and those that {}", 2),
    "no state": ("rows.svm", "without", [],
                 "{}: the model has no state of a learner, only its weights; models written with "
                 "--keep-state have one", 2),
    "solver": ("rows.svm", "solver", [], "{}: the model has no state of a learner", 2),
    "no model": ("rows.svm", "rows.svm", [], "{}: not a model, or cut short", 1),
    "no file": ("rows.svm", "none", [], "{}: No such file", 1),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_differs_is_said(case: str, begun: Path) -> None:
    data, model, options, message, code = REFUSED[case]
    made = begun / "refused"
    done = called("train", begun / data, "--from", begun / model, "-m", made, *options, code=code)
    assert message.format(begun / model) in done.stderr
    assert "Traceback" not in done.stderr
    assert not made.exists()


def test_the_same_options_may_be_given_again(begun: Path) -> None:
    again = ["--rule", "ftrl", "--l1", "2", "--loss", "logistic", "--classes", "-1,1"]
    more = ["--from", begun / "ftrl", "-m", begun / "same", "--quiet"]
    called("train", begun / "rows.svm", *more, *again)
    called("train", begun / "rows.vw", "--bits", "9", *more[2:], "--from", begun / "bits")


def test_the_model_may_be_replaced_by_its_continuation(begun: Path) -> None:
    train(begun, begun / "rows.svm", "daily", "--rule", "ftrl", "--keep-state")
    for day in (2, 3):
        again = ["--from", begun / "daily", "--keep-state"]
        found = train(begun, begun / "rows.svm", "daily", *again)
        assert found.parameters["runs"] == day
        assert found.history[-1].examples == 400 * day


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "coordinate-descent"], "--keep-state cannot be used with the rule coordinate"),
        (["--scale", "standard"], "only scaled rows; leave out --scale: the rule one-pass"),
        (["--scale", "standard", "--rule", "ftrl"], "know only scaled rows\n"),
    ],
)
def test_a_state_that_cannot_be_kept_is_refused_before_training(
    options: list[str], message: str, begun: Path
) -> None:
    made = begun / "kept"
    done = called("train", begun / "rows.svm", "-m", made, "--keep-state", *options, code=2)
    assert message in done.stderr
    assert not made.exists()


def test_inspect_shows_the_state_and_its_size(begun: Path) -> None:
    facts = json.loads(called("inspect", begun / "ftrl", "--json").stdout)
    size = thresher.load(begun / "ftrl").learner.bytes
    assert facts["learner's state"] == size > 1000
    shown = called("inspect", begun / "ftrl").stdout
    assert f"learner's state  {size:,} bytes" in shown
    assert "none" in next(
        line for line in called("inspect", begun / "without").stdout.splitlines()
        if line.startswith("learner's state")
    )  # fmt: skip


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "continue.md").read_text()
    commands = re.findall(r"^\$ thresher (.*)$", page, re.M)
    assert len(commands) == 6
    monkeypatch.chdir(tmp_path)
    for day in ("monday", "tuesday"):
        vw(tmp_path / f"{day}.vw", seed=len(day))
    for command in commands:
        called(*command.split())
    whole = train(tmp_path, tmp_path / "monday.vw", "whole", tmp_path / "tuesday.vw")
    assert same_weights(thresher.load("clicks.thresher"), whole)
