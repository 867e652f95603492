"""`--scale`: models of scaled columns predict rows as they are."""

from __future__ import annotations

import signal
import subprocess
import time

import numpy as np
import pytest

from support.files import THRESHER, called, svmlight, vw
from support.slices import sliced
from thresher import load
from thresher.data.scan import scan

SIZES = 10.0 ** np.arange(-3, 5)


def table(path, rows=600, seed=0, classes=3):
    """Write a CSV file whose columns have very different sizes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 8))
    y = np.digitize(X[:, 0] - X[:, 7] + 0.2 * rng.normal(size=rows), [-0.6, 0.6][: classes - 1])
    lines = [",".join([*(f"c{j}" for j in range(8)), "label"])]
    whole = np.column_stack([X * SIZES, y])
    lines += [",".join(map(repr, row)) for row in whole.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


def accuracy(model, path):
    clf = load(model)
    source = scan(path)
    found = np.asarray(clf.predict(source), float)
    true = np.concatenate([block.labels for block in scan(path).blocks()])
    return float(np.mean(found == true))


@pytest.mark.parametrize("rule", ["ftrl", "dual-averaging", "truncated-gradient", "stabilized"])
@pytest.mark.parametrize("how", ["variance", "max"])
def test_scaled_columns_give_a_good_model_of_rows_as_they_are(tmp_path, rule, how):
    data, test = table(tmp_path / "train.csv"), table(tmp_path / "test.csv", seed=1)
    train = "train", data, "--rule", rule, "--multiclass", "--passes", "8", "--shuffle", "--quiet"
    called(*train, "-m", tmp_path / "raw")
    assert "times" not in called(*train, "-m", tmp_path / "scaled", "--scale", how).stderr
    good = accuracy(tmp_path / "scaled", test)
    assert good > 0.8
    assert good > accuracy(tmp_path / "raw", test)
    model = load(tmp_path / "scaled")
    assert "scale" not in model.parameters


def test_the_default_rule_needs_no_scaling(tmp_path):
    data, test = table(tmp_path / "train.csv"), table(tmp_path / "test.csv", seed=1)
    for name, more in (("raw", ()), ("scaled", ("--scale", "variance"))):
        done = called("train", data, "-m", tmp_path / name, "--multiclass", *more)
        assert "warning" not in done.stderr
    found = accuracy(tmp_path / "raw", test)
    assert found > 0.8
    assert abs(found - accuracy(tmp_path / "scaled", test)) < 0.03


def test_columns_far_from_zero_get_a_note_that_leads_to_a_better_model(tmp_path):
    """The rule one-pass does not depend on the scale of columns, but on where they lie."""
    for name, seed in (("train.csv", 0), ("test.csv", 1)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 4))
        y = X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=300) > 0
        whole = np.column_stack([X * [1, 50, 0.1, 9] + [30, 2000, 1, 400], y]).tolist()
        lines = ["a,b,c,d,label", *(",".join(map(repr, row)) for row in whole)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    data, test = tmp_path / "train.csv", tmp_path / "test.csv"
    done = called("train", data, "-m", tmp_path / "raw")
    assert (
        "4 of 4 columns are far from zero compared to their spread (column 'd': mean" in done.stderr
    )
    assert "--scale standard" in done.stderr
    for rule in (), ("--rule", "ftrl"):
        done = called("train", data, "-m", tmp_path / "m", "--scale", "standard", *rule)
        assert "far from zero" not in done.stderr
        assert accuracy(tmp_path / "m", test) > accuracy(tmp_path / "raw", test) + 0.05


def test_pipes_caches_and_validation_rows(tmp_path):
    data = table(tmp_path / "rows.csv", classes=2)
    text = data.read_bytes()
    train = "train", "-", "-m", tmp_path / "m", "--rule", "ftrl", "--scale", "variance"
    done = called(*train, stdin=text, code=2)
    assert "--scale must read the rows twice: standard input needs --cache FILE" in done.stderr
    called(*train, "--cache", tmp_path / "cache", "--quiet", stdin=text)
    once = load(tmp_path / "m")
    called("train", data, *train[2:], "--quiet")
    np.testing.assert_allclose(load(tmp_path / "m").weights, once.weights, rtol=1e-4)
    done = called("train", data, *train[2:], "--valid", data, "--passes", "3")
    assert "loss on the validation rows 0." in done.stderr


def test_named_features_bits_and_tune(tmp_path):
    data = vw(tmp_path / "rows.vw")
    for bits in (None, 12):
        more = [] if bits is None else ["--bits", bits]
        called("train", data, "-m", tmp_path / "m", "--scale", "max", "--rule", "ftrl", *more)
        assert accuracy_of_signs(load(tmp_path / "m"), data, bits=bits) > 0.7
    tune = "tune", data, "-m", tmp_path / "m", "--grid", "l1=0.1,1", "--quiet"
    called(*tune, "--scale", "variance")
    assert accuracy_of_signs(load(tmp_path / "m"), data) > 0.7
    rows = table(tmp_path / "rows.csv", classes=2)
    tune = "tune", rows, "-m", tmp_path / "m", "--grid", "l1=0.01,0.1", "--passes", "4", "--shuffle"
    assert "warning: column 'c" in called(*tune, "--quiet").stderr
    assert "warning" not in called(*tune, "--quiet", "--scale", "variance").stderr
    assert accuracy(tmp_path / "m", rows) > 0.85


def accuracy_of_signs(model, path, **reading):
    true = np.concatenate([block.labels for block in scan(path).blocks()])
    found = model.decision_function(scan(path, **reading))
    return float(np.mean(np.sign(found) == np.sign(true)))


@pytest.mark.parametrize("again", sliced([[], ["--scale", "variance"]], 0))
def test_a_resumed_run_is_exact(tmp_path, again):
    rows = svmlight(tmp_path / "rows.svm", rows=20_000)
    options = ["--rule", "ftrl", "--passes", "30", "--shuffle", "--quiet"]
    whole, model = tmp_path / "whole", tmp_path / "m"
    called("train", rows, "-m", whole, *options, "--scale", "variance")
    train = [*THRESHER, "train", str(rows), "-m", str(model), *options, "--scale", "variance"]
    with subprocess.Popen([*train, "--every", "0.01s"]) as process:
        while not (tmp_path / "m.checkpoint").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    called("train", rows, "-m", model, "--resume", "--quiet", *again)
    one, other = load(whole), load(model)
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.indices, other.indices)


def test_what_is_refused(tmp_path):
    rows = table(tmp_path / "rows.csv", classes=2)
    train = "train", rows, "-m", tmp_path / "m"
    done = called(*train, "--scale", "unit-norm", code=2)
    assert "--scale must be one of variance, max, standard; got 'unit-norm'" in done.stderr
    done = called(*train, "--scale", "max", "--workers", "0", "--rule", "ftrl", code=2)
    assert "--scale cannot be used with --ray or --workers" in done.stderr
    done = called(*train, "--scale", "max", "--rule", "auto", code=2)
    assert "--scale" in done.stderr
