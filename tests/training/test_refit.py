"""The refit of `target_nnz`: it equals fits on the kept features, and never keeps more weights."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from support.files import called
from thresher import Interrupted, Observer
from thresher.data.row_folds import fold_numbers
from thresher.rules import RULES
from thresher.training import checkpoint as checkpoints
from thresher.training import refit as refitting

RULE_PENALTIES = {"FTRL": "l1", "TruncatedGradient": "gravity"}
ROWS, COLUMNS = 300, 40


def rows(classes: int = 2, seed: int = 0, dense: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = sp.random(ROWS, COLUMNS, 0.3, "csr", random_state=seed, dtype=np.float64)
    X.data = rng.normal(size=X.nnz)
    scores = X[:, : 3 * classes].toarray().reshape(ROWS, classes, 3).sum(axis=2)
    y = (scores + 0.5 * rng.normal(size=scores.shape)).argmax(axis=1)
    return (X.toarray() if dense else X), y


def classifier(rule: str, **params: Any) -> Any:
    return getattr(thresher, f"{rule}Classifier")(**{"random_state": 0, "passes": 5, **params})


def fits_of(clf: Any, X: Any, y: Any, weights: Any, share: float, output: int) -> tuple[Any, Any]:
    """Return held-out scores and the model of one penalty, by separate fits on the kept columns."""
    kept, part = clf.refit_before[output].keys.astype(int), clf.refit_.largest[output]
    params = {RULE_PENALTIES[type(clf).__name__.removesuffix("Classifier")]: share * part}
    params |= {"target_nnz": None, "shuffle": False}
    made = type(clf)(**{**clf.get_params(), **params})
    target = (y == output).astype(int) if len(clf.refit_.largest) > 1 else y
    folds, held_out = fold_numbers(0, len(y), refitting.FOLDS), np.zeros(len(y))
    for fold in range(refitting.FOLDS):
        train, test = folds != fold, folds == fold
        own = None if weights is None else weights[train]
        held_out[test] = made.fit(X[train][:, kept], target[train], own).decision_function(
            X[test][:, kept]
        )
    return held_out, made.fit(X[:, kept], target, weights)


@settings(max_examples=settings.default.max_examples)
@given(
    rule=st.sampled_from(sorted(RULE_PENALTIES)),
    classes=st.sampled_from([2, 3]),
    target=st.sampled_from([1, 4, 60]),
    weighted=st.booleans(),
    dense=st.booleans(),
    seed=st.integers(0, 5),
)
def test_equals_separate_fits(
    rule: str, classes: int, target: int, weighted: bool, dense: bool, seed: int
) -> None:
    """Losses, choice and weights are those of separate fits on the kept columns."""
    X, y = rows(classes, seed, dense)
    weights = np.random.default_rng(seed).uniform(0.2, 2.0, ROWS) if weighted else None
    # With eta0="auto", rates are relative to the norms of the rows that a lane has seen: the same.
    params = {"target_nnz": target, "shuffle": False, "dtype": "float64"}
    params |= {"alpha": 1.0} if rule == "FTRL" else {}
    clf = classifier(rule, **params).fit(X, y, weights)
    shrunk = classifier(rule, refit=False, **params).fit(X, y, weights)
    clf.refit_before = before = shrunk._fitted.learned()
    found, own = clf.refit_, np.ones(ROWS) if weights is None else weights
    outputs = range(len(before))
    for share, loss in zip(found.shares, found.losses, strict=True):
        sums = [
            own @ np.logaddexp(0.0, -np.where(_is(y, k, classes), 1, -1) * scores)
            for k in outputs
            for scores, _ in [fits_of(clf, X, y, weights, share, k)]
        ]
        assert loss == pytest.approx(sum(sums) / own.sum() / len(before), rel=1e-7)
    raw = np.column_stack([shrunk.model_.raw(X)[:, k] for k in outputs])
    expected = [
        own @ np.logaddexp(0.0, -np.where(_is(y, k, classes), 1, -1) * raw[:, k])
        * (1 + 2 * len(before[k].keys) / ROWS) for k in outputs
    ]  # fmt: skip
    assert found.loss_before == pytest.approx(sum(expected) / own.sum() / len(before), rel=1e-9)
    assert (found.share is None) == (min(found.losses) >= found.loss_before)
    for k in outputs:
        kept, now = before[k].keys, clf._fitted.learned()[k]
        assert set(now.keys.tolist()) <= set(kept.tolist())
        assert len(now.keys) <= target
        if found.share is None:
            np.testing.assert_array_equal(now.weights, before[k].weights)
        else:
            _, model = fits_of(clf, X, y, weights, found.share, k)
            dense_now = np.zeros(COLUMNS)
            dense_now[now.keys.astype(int)] = now.weights
            close = {"rtol": 1e-7, "atol": 1e-9}
            np.testing.assert_allclose(dense_now[kept.astype(int)], model.coef_[0], **close)
            assert now.intercept == pytest.approx(model.intercept_[0], rel=1e-7, abs=1e-9)


def _is(y: Any, output: int, classes: int) -> Any:
    return y == (1 if classes == 2 else output)


@pytest.mark.parametrize("rule", RULE_PENALTIES)
def test_it_lowers_the_loss_of_shrunk_weights(rule: str) -> None:
    """On rows with many more noise features than useful ones, held-out rows gain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 300))
    y = X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=1500) > 0
    losses = []
    for again in (False, True):
        clf = classifier(rule, target_nnz=3, refit=again).fit(X[:1000], y[:1000])
        assert set(clf.model_.indices.tolist()) == {0, 1, 2}
        margins = np.where(y[1000:], 1, -1) * clf.decision_function(X[1000:])
        losses.append(np.logaddexp(0, -margins).mean())
    assert losses[1] <= losses[0]
    assert rule != "FTRL" or losses[1] < 0.9 * losses[0]


def test_exact_bits_stay_reachable() -> None:
    """refit=False gives the weights of the passes, and training continues from them."""
    X, y = rows()
    plain = classifier("FTRL", target_nnz=5, refit=False).fit(X, y)
    refitted = classifier("FTRL", target_nnz=5).fit(X, y)
    assert not hasattr(plain, "refit_")
    one, other = plain._fitted.outputs.states(), refitted._fitted.outputs.states()
    assert one == other
    plain.partial_fit(X, y)
    with pytest.warns(UserWarning, match="not learned again"):
        refitted.partial_fit(X, y)
    np.testing.assert_array_equal(plain.coef_, refitted.coef_)
    assert not hasattr(refitted, "refit_")


def test_without_a_target_nothing_changes() -> None:
    X, y = rows()
    one, other = (classifier("FTRL", refit=again).fit(X, y) for again in (True, False))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert not hasattr(one, "refit_")


def test_partial_fit_says_once_that_it_does_not_refit() -> None:
    X, y = rows()
    clf = classifier("TruncatedGradient", target_nnz=5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for part in np.array_split(np.arange(ROWS), 5):
            clf.partial_fit(X[part], y[part], classes=[0, 1])
    assert len(caught) == 1
    assert "partial_fit sees each row once" in str(caught[0].message)


def test_pipes_are_not_refitted_and_say_so() -> None:
    X, y = rows(dense=True)
    given = ((x, int(label)) for x, label in zip(X, y, strict=True))
    clf = classifier("FTRL", target_nnz=5, passes=1)
    source = thresher.scan(_blocks(given))
    assert not source.rereadable
    with pytest.warns(UserWarning, match="can be read only once"):
        clf.fit(source, classes=[0, 1])
    assert clf.model_.nnz <= 5
    assert not hasattr(clf, "refit_")


def _blocks(given: Any) -> Any:
    X, y = zip(*given, strict=True)
    yield np.array(X), np.array(y)


def test_a_loss_that_scales_rows_is_not_refitted() -> None:
    X, y = rows()
    reg = thresher.FTRLRegressor(loss="clipped_square", target_nnz=4, random_state=0, passes=2)
    with pytest.warns(UserWarning, match="scales each row"):
        reg.fit(X, y / 2)


def lines(X: Any, y: Any) -> str:
    rows = []
    for row, label in zip(sp.csr_matrix(X), y, strict=True):
        pairs = zip(row.indices, row.data, strict=True)
        rows.append(f"{label} " + " ".join(f"{k + 1}:{value:.17g}" for k, value in pairs) + "\n")
    return "".join(rows)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    X, y = rows()
    path = tmp_path / "rows.svm"
    path.write_text(lines(X, 2 * y - 1))
    return path


@pytest.mark.parametrize("rule", RULE_PENALTIES)
def test_sources_and_matrices_agree(rule: str, file: Path) -> None:
    X, y = rows()
    params = {"target_nnz": 6, "shuffle": False}
    by_rows = (
        classifier(rule, gravity=0.001, **params) if rule != "FTRL" else classifier(rule, **params)
    )
    by_file = type(by_rows)(**by_rows.get_params())
    by_rows.fit(X, 2 * y - 1)
    by_file.fit(thresher.scan(str(file)), classes="binary")
    np.testing.assert_array_equal(by_rows.model_.indices, by_file.model_.indices)
    np.testing.assert_array_equal(by_rows.model_.weights, by_file.model_.weights)
    assert by_rows.refit_.losses == by_file.refit_.losses


def test_rows_that_do_not_fit_are_learned_while_they_are_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass in any pieces equals one pass over all rows."""
    whole = classifier("FTRL", target_nnz=6, shuffle=False, passes=1)
    whole.fit(thresher.scan(str(file)), classes="binary")
    monkeypatch.setattr(refitting, "_MOST", 10)
    pieces = type(whole)(**whole.get_params())
    pieces.fit(thresher.scan([str(file)] * 1), classes="binary")
    np.testing.assert_array_equal(whole.coef_, pieces.coef_)
    twice = type(whole)(**whole.get_params())
    twice.fit(thresher.scan([str(file), str(file)]), classes="binary")
    assert twice.refit_.share is not None
    assert twice.model_.nnz <= 6


def test_named_features_and_weights_of_sources(tmp_path: Path) -> None:
    """Features of a hashed store keep their names; weights in the file are those of `fit`."""
    X, y = rows(dense=True)
    lines = [
        f"{2 * label - 1} {1 + i % 3} 't| "
        + " ".join(f"f{k}:{v!r}" for k, v in enumerate(row) if v)
        for i, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True))
    ]
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(lines) + "\n")
    params = {"target_nnz": 5, "shuffle": False, "dtype": "float64"}
    named = classifier("FTRL", store="hashed", **params)
    named.fit(thresher.scan(str(path)), classes="binary")
    plain = classifier("FTRL", **params).fit(X, y, 1.0 + np.arange(ROWS) % 3)
    found = {feature.name.split("^")[-1]: feature.weight for feature in named.model_.top(5)}
    expected = {f"f{feature.name}": feature.weight for feature in plain.model_.top(5)}
    assert found == pytest.approx(expected, rel=1e-9)
    assert named.refit_.losses == pytest.approx(plain.refit_.losses, rel=1e-9)


def test_labels_and_weights_of_several_outputs() -> None:
    """Multilabel rows, class weights and records."""
    X, y = rows(3)
    table = np.column_stack([y == 0, y > 0, y == 2]).astype(int)
    clf = classifier("FTRL", target_nnz=4).fit(X, table)
    assert len(clf.refit_.largest) == 3
    assert np.diff(clf.model_.indptr).max() <= 4
    heavy = classifier("FTRL", target_nnz=4, class_weight={0: 5.0, 1: 1.0, 2: 1.0}).fit(X, y)
    equal = classifier("FTRL", target_nnz=4).fit(X, y, np.where(y == 0, 5.0, 1.0))
    np.testing.assert_allclose(heavy.coef_.toarray() if sp.issparse(heavy.coef_) else heavy.coef_,
                               equal.coef_)  # fmt: skip


def test_records_are_of_the_new_weights() -> None:
    X, y = rows()
    clf = classifier("FTRL", target_nnz=5)
    clf.fit(X[:200], y[:200], eval_set=(X[200:], y[200:]))
    assert clf.refit_.share is not None
    margins = np.where(y[200:] == 1, 1, -1) * clf.decision_function(X[200:])
    assert clf.history_[-1].valid_loss == pytest.approx(np.logaddexp(0, -margins).mean(), rel=1e-6)
    assert clf.history_[-1].nonzeros == clf.model_.nnz


def test_early_stopping_and_warm_starts() -> None:
    X, y = rows()
    clf = classifier("TruncatedGradient", target_nnz=5, tol=0.0, patience=1, passes=30)
    clf.fit(X[:200], y[:200], eval_set=(X[200:], y[200:]))
    assert clf.n_iter_ < 30
    assert clf.refit_ is not None
    warm = classifier("FTRL", target_nnz=5, passes=2, warm_start=True).fit(X, y).fit(X, y)
    assert warm.refit_.losses
    assert warm.n_iter_ == 4


def test_pickles_and_files_have_the_new_weights(tmp_path: Path) -> None:
    X, y = rows()
    clf = classifier("FTRL", target_nnz=5).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(clf.coef_, again.coef_)
    assert again.refit_ == clf.refit_
    clf.model_.save(tmp_path / "model")
    np.testing.assert_array_equal(thresher.load(tmp_path / "model").weights, clf.model_.weights)


def test_weights_of_zero_keep_the_shrunk_model() -> None:
    X, y = rows()
    weights = np.ones(ROWS)
    weights[fold_numbers(0, ROWS, refitting.FOLDS) == 0] = 0.0
    clf = classifier("FTRL", target_nnz=5).fit(X, y, weights)
    assert np.isfinite(clf.refit_.losses).all()


class StopsInTheRefit(Observer):
    """Stops a run after the last pass."""

    def __init__(self) -> None:
        self.trained = False

    def tell(self, event: str, **facts: Any) -> None:
        self.trained = self.trained or event == "trained"

    def stops(self) -> bool:
        return self.trained


@pytest.mark.parametrize("rule", RULE_PENALTIES)
def test_a_run_stopped_in_the_refit_is_resumed(rule: str, tmp_path: Path) -> None:
    X, y = rows(3)
    whole = classifier(rule, target_nnz=5).fit(X, y)
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Interrupted):
        classifier(rule, target_nnz=5).fit(X, y, checkpoint=path, observer=StopsInTheRefit())
    resumed = classifier(rule, target_nnz=5).fit(X, y, checkpoint=path, resume=True)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.refit_ == whole.refit_


def test_a_run_of_a_version_without_refit_is_resumed_without_it(tmp_path: Path) -> None:
    X, y = rows()
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Interrupted):
        classifier("FTRL", target_nnz=5).fit(X, y, checkpoint=path, observer=StopsInTheRefit())
    saved = checkpoints.read(path)
    options = {k: v for k, v in saved.about["options"].items() if k != "refit"}
    replace(saved, about={**saved.about, "options": options}).write(path)
    resumed = classifier("FTRL", target_nnz=5).fit(X, y, checkpoint=path, resume=True)
    expected = classifier("FTRL", target_nnz=5, refit=False).fit(X, y)
    np.testing.assert_array_equal(resumed.coef_, expected.coef_)


def test_another_rule_can_refit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule without a penalty of its own names the rule that learns its kept weights again."""
    spec = replace(RULES["truncated-gradient"], refit_rule="ftrl")
    monkeypatch.setitem(RULES, "truncated-gradient", spec)
    X, y = rows()
    clf = classifier("TruncatedGradient", target_nnz=5).fit(X, y)
    assert clf.refit_.share is not None
    assert 0 < clf.model_.nnz <= 5


def test_the_command_line(file: Path, tmp_path: Path) -> None:
    models = {}
    for again in ("--refit", "--no-refit"):
        model = tmp_path / f"model{again}"
        done = called("train", file, "-m", model, "--passes", "3", "--target-nnz", "5", again)
        models[again] = thresher.load(model)
        assert ("held-out loss" in done.stderr + done.stdout) == (again == "--refit")
        assert models[again].nnz <= 5
        assert models[again].parameters["refit"] == (again == "--refit")
    assert set(models["--refit"].indices.tolist()) <= set(models["--no-refit"].indices.tolist())
    piped = tmp_path / "piped"
    text = file.read_bytes()
    done = called("train", "-", "-m", piped, "--target-nnz", "5", stdin=text)
    assert "can be read only once" in done.stderr
    assert thresher.load(piped).nnz <= 5
