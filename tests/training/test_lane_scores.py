"""Scores and counts of lanes in the core equal those of their predictions and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, log_loss

from thresher import rules
from thresher.data import as_batch
from thresher.rules import core_args
from thresher.training.lanes import Lane, LaneTeam
from thresher.training.scores import SCORES, sums_in_core

ROWS, WIDTH = 600, 40


def rows(seed: int, size: float = 1.0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return sparse rows and labels of -1 and 1."""
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(rng.normal(size=(ROWS, WIDTH)) * (rng.random((ROWS, WIDTH)) < 0.2) * size)
    return X, np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)


def team(rule: str, lanes: int, n_jobs: int, store: str = "dense", **given: Any) -> LaneTeam:
    """Return lanes of different penalties in three clocks."""
    table = rules.RULES[rule].parameters
    params = {name: p.default_for("classifier") for name, p in table.items()}
    params |= {"loss": "logistic", "store": store} | given
    penalty = next(name for name in ("gravity", "l1", "alpha") if name in params)
    rate = {"alpha": 0.1} if rule == "ftrl" else {}
    made = []
    for lane in range(lanes):
        own = {**params, **rate, penalty: 1e-4 * 1.4**lane}
        made.append(Lane(*core_args.core_parameters(rule, own, ROWS), clock=lane % 3))
    return LaneTeam(rules.RULES[rule].core, store, "float32", WIDTH, made, n_jobs)


def learned(rule: str, lanes: int, n_jobs: int, seed: int, size: float = 1.0, **more: Any) -> Any:
    """Return lanes that learned some rows, a batch of the rows, and the labels."""
    X, y = rows(seed, size)
    made, batch = team(rule, lanes, n_jobs, **more), as_batch(X, y)
    seen = np.arange(ROWS)[:, None] % 3 != np.arange(3)
    made.learn(batch, seen=np.ascontiguousarray(seen, np.uint8))
    return made, batch, y


@pytest.mark.parametrize("rule", ["truncated-gradient", "ftrl"])
@pytest.mark.parametrize("store", ["dense", "hashed"])
@settings(max_examples=settings.default.max_examples)
@given(st.integers(1, 35), st.integers(0, 9), st.sampled_from([1.0, 300.0]))
def test_scores_are_those_of_the_predictions(
    rule: str, store: str, lanes: int, seed: int, size: float
) -> None:
    """Also for very large margins, where probabilities are clipped."""
    made, batch, y = learned(rule, lanes, 1, seed, size, store=store)
    own, some = np.arange(lanes), np.arange(0, ROWS, 2)
    raw = made.predict(batch, own, some)
    call = batch, own, some, y[some]
    hits, losses, squares, absolutes = made.scores(
        [
            (*call, kind, 0.25 if kind == "hits" else 0.0, 1, False)
            for kind in ("hits", "log losses", "squares", "absolutes")
        ]
    )
    chosen = np.where(raw >= 0.25, 1.0, -1.0)
    assert (hits == [accuracy_score(y[some], p, normalize=False) for p in chosen.T]).all()
    p = 1 / (1 + np.exp(-raw))
    expected = [log_loss(y[some], np.column_stack([1 - q, q])) for q in p.T]
    np.testing.assert_allclose(losses / len(some), expected, rtol=1e-10 if size == 1.0 else 1e-6)
    np.testing.assert_allclose(squares, ((raw - y[some, None]) ** 2).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(absolutes, np.abs(raw - y[some, None]).sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_scores_have_the_same_bits_for_any_number_of_threads(n_jobs: int) -> None:
    """The sums of a lane do not depend on other lanes."""
    found = []
    for jobs in (1, n_jobs):
        made, batch, y = learned("truncated-gradient", 20, jobs, 0)
        call = batch, np.arange(20), np.arange(ROWS), y, "log losses", 0.0, 1, False
        found.append(made.scores([call])[0])
        made.close()
    assert (found[0] == found[1]).all()


def test_scores_of_several_outputs() -> None:
    """The class is the first output with the largest prediction."""
    made, batch, _ = learned("truncated-gradient", 12, 1, 0)
    lanes, true = np.arange(12), np.arange(ROWS) % 3
    raw = made.predict(batch, lanes).reshape(ROWS, 4, 3)
    call = batch, lanes, np.arange(ROWS), true.astype(float), "hits", 0.0, 3, False
    assert (made.scores([call])[0] == (true == raw.argmax(axis=2).T).sum(axis=1)).all()


@pytest.mark.parametrize("rule", ["truncated-gradient", "ftrl", "dual-averaging", "averaged-sgd"])
@pytest.mark.parametrize("store", ["dense", "hashed"])
@pytest.mark.parametrize("lanes", [3, 7, 16, 33])
def test_counts_are_those_of_the_weights(rule: str, store: str, lanes: int) -> None:
    """Also in lines of any size."""
    made, _, _ = learned(rule, lanes, 1, 0, store=store)
    assert made.nonzeros().tolist() == [len(made.weights(lane)[0]) for lane in range(lanes)]


def test_only_some_scores_are_summed_in_the_core() -> None:
    """Probabilities of other links, and those of several outputs, are not."""
    assert sums_in_core(SCORES["neg_log_loss"], "logistic", 1) == ("log losses", 0.0, 1)
    assert sums_in_core(SCORES["neg_log_loss"], "logistic", 3) is None
    assert sums_in_core(SCORES["neg_log_loss"], "squared", 1) is None
    assert sums_in_core(SCORES["accuracy"], "hinge", 3) == ("hits", 0.0, 3)
    assert sums_in_core(SCORES["neg_mean_squared_error"], "poisson", 1) is None
    assert sums_in_core(SCORES["r2"], "squared", 1) is None
