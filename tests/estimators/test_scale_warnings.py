"""Columns of very different scale: each rule that cares warns, and the others stay silent."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from support.files import called
from thresher import scan
from thresher.cli.render.errors import shell_message
from thresher.health import ColumnScaleWarning
from thresher.health.column_scales import different_column
from thresher.rules import RULES
from thresher.stability import StreamingStabilitySelection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 5))
Y = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=600)
WIDE = X * [1, 1, 1, 1e4, 1]
COLUMNS = ["age", "rooms", "floor", "salary", "size"]
PAIRS = [
    (name, estimator, RULES[name].scales_columns)
    for name in RULES
    for estimator in RULES[name].estimators.values()
]


def target(estimator: str):
    return (Y > 0).astype(float) if estimator.endswith("Classifier") else Y


def sent(fit) -> list[ColumnScaleWarning]:
    """Return the warnings of columns that a call sends."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit()
    return [one.message for one in found if issubclass(one.category, ColumnScaleWarning)]


def csv(path, rows, y):
    lines = [",".join([*COLUMNS, "label"])]
    whole = np.column_stack([rows, y]).tolist()
    lines += [",".join(map(repr, row)) for row in whole]
    path.write_text("\n".join(lines) + "\n")
    return path


def svm(path, rows, y):
    lines = (
        f"{label:g} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
        for row, label in zip(rows.tolist(), y, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_rules_that_do_not_care():
    assert [name for name, rule in RULES.items() if rule.scales_columns] == [
        "one-pass", "coordinate-descent",
    ]  # fmt: skip


@pytest.mark.parametrize(("rule", "name", "free"), PAIRS)
def test_every_estimator_on_matrices_frames_and_sources(rule, name, free, tmp_path):
    pd, y = pytest.importorskip("pandas"), target(name)
    made = getattr(thresher, name)
    named = {"store": "hashed"} if "store" in made().get_params() else {}
    bits = {} if named else {"bits": 10}
    if rule == "mirror-descent":
        named, bits = {}, {"bits": 10}
    for rows, label in (
        (WIDE, "3"),
        (sp.csr_matrix(WIDE), "3"),
        (pd.DataFrame(WIDE, columns=COLUMNS), "'salary'"),
    ):
        found = sent(lambda rows=rows: made(passes=2).fit(rows, y))
        assert len(found) == (not free), name
        assert all(f"{name}: column {label} is" in str(one) for one in found)
    assert sent(lambda: made(passes=2).fit(X, y)) == []
    svm(tmp_path / "rows.svm", WIDE, y)
    csv(tmp_path / "rows.csv", WIDE, y)
    for file, label, reading, params in (
        ("rows.svm", "4", {}, {}),  # svmlight numbers features from 1
        ("rows.csv", "'salary'", bits, named),
    ):
        for scale in (None, "variance", "max", "standard"):
            source = scan(tmp_path / file, scale=scale, **reading)
            found = sent(lambda: made(passes=2, **params).fit(source))  # noqa: B023
            warned = not free and scale is None
            assert [f": column {label} is " in str(one) for one in found] == [True] * warned


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_in_the_shell(rule, tmp_path):
    classifies = "classifier" in RULES[rule].estimators
    name = RULES[rule].estimators["classifier" if classifies else "regressor"]
    loss = [] if classifies else ["--loss", "squared"]
    if len(RULES[rule].losses) == 1:
        loss = []
    data = csv(tmp_path / "rows.csv", WIDE, target(name))
    train = ["train", data, "-m", tmp_path / "m", "--rule", rule, "--quiet", *loss]
    train += ["--bits", "10"] if rule in ("mirror-descent", "margin-perceptron") else []
    shown = called(*train).stderr
    if RULES[rule].scales_columns:
        assert "times larger" not in shown
        return
    lines = [line for line in shown.splitlines() if "times larger" in line]
    assert len(lines) == 1
    assert lines[0].startswith("warning: column 'salary' is ")
    assert "(mean absolute value " in lines[0]
    assert lines[0].endswith(
        "; use --scale standard, or --rule one-pass, which does not depend on the scale"
    )
    assert "times larger" not in called(*train, "--scale", "standard").stderr


def test_searches_warn():
    ftrl = thresher.FTRLClassifier(passes=1, random_state=0)
    for estimator in (
        thresher.OnePassSearchCV(ftrl, {"l1": [0.1, 1.0]}, refit=False),
        thresher.SparsityPath(ftrl),
        StreamingStabilitySelection(ftrl, pairs=2, permutations=0, random_state=0),
    ):
        assert len(sent(lambda estimator=estimator: estimator.fit(WIDE, Y > 0))) == 1


def test_later_rows_are_looked_at(tmp_path):
    rows = np.tile(X, (10, 1))
    late = rows.copy()
    late[3000:] *= [1, 1, 1, 1e4, 1]
    y = np.tile(Y > 0, 10)
    assert sent(lambda: thresher.FTRLClassifier(passes=1).fit(rows, y)) == []
    assert len(sent(lambda: thresher.FTRLClassifier(passes=1).fit(late, y))) == 1
    stream = scan(lambda: ((late[i : i + 500], y[i : i + 500]) for i in range(0, 6000, 500)))
    assert len(sent(lambda: thresher.FTRLClassifier(passes=1).fit(stream))) == 1


def test_names_of_hashed_features_and_of_pipes(tmp_path):
    lines = [f"{int(y > 0)} |a x:{v[0]} y:{v[1]} z:{1e4 * v[2]}" for v, y in zip(X, Y, strict=True)]
    (tmp_path / "rows.vw").write_text("\n".join(lines) + "\n")
    shown = called("train", tmp_path / "rows.vw", "-m", tmp_path / "m", "--rule", "ftrl", "--quiet")
    assert "column 'a^z' is" in shown.stderr
    text = (tmp_path / "rows.vw").read_bytes()
    shown = called(
        "train",
        "-",
        "--format",
        "vw",
        "-m",
        tmp_path / "m",
        "--rule",
        "ftrl",
        "--quiet",
        stdin=text,
    )
    assert "column 'a^z' is" in shown.stderr


def test_warning_has_facts_and_words_of_the_shell():
    found = sent(lambda: thresher.DualAveragingClassifier(passes=1).fit(WIDE, Y > 0))[0]
    assert isinstance(found, thresher.errors.DataWarning)
    assert found.owner == "DualAveragingClassifier"
    assert "UnitVarianceScaler" in str(found)
    assert "scale='standard'" in str(found)
    text = shell_message(found)
    assert text.startswith("column 3 is ")
    assert "--scale standard" in text
    assert "UnitVarianceScaler" not in text


def test_counts_of_words_are_fine_and_tables_are_not():
    """Large values of a column of counts are rare: its mean is like that of other columns."""
    counts = RNG.poisson(0.1, size=(500, 50)).astype(float)
    counts[::50, 7] = 60.0
    rows = sp.csr_matrix(counts)
    assert different_column(rows.indices, rows.data) is None
    for factor, wrong in ((20.0, False), (30.0, True), (1 / 80, False), (1 / 120, True)):
        scaled = np.abs(X[:500]) * [1, 1, 1, factor, 1]
        found = different_column(np.tile(np.arange(5), 500), scaled.ravel())
        assert (found is not None) == wrong
    counts[:, 7] = 0.0
    counts[0, 7] = 1e5
    rare = sp.csr_matrix(counts)
    found = different_column(rare.indices, rare.data)
    assert found is not None
    assert found.few
    assert "largest value 1e+05" in found.described("7")
