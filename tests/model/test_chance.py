"""`why()` is honest about features in few rows, and about "no signal"."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from thresher import StabilizedClassifier
from thresher.estimators.effective_rows import EffectiveRows
from thresher.model.evidence import no_signal_text, outputs_without_signal
from thresher.model.model import Model
from thresher.report.model_page import model_page

ROWS = 2000


def columns(seed: int, values: str) -> sp.csr_matrix:
    """Return columns whose frequencies are those of Zipf's law."""
    rng = np.random.default_rng(seed)
    counts = np.maximum(1, rng.binomial(ROWS, 0.4 / np.arange(1, 1001) ** 0.9))
    rows = np.concatenate([rng.choice(ROWS, count, replace=False) for count in counts])
    data = np.ones(len(rows)) if values == "ones" else np.exp(rng.normal(size=len(rows)))
    found = sp.csc_matrix((data, rows, np.cumsum([0, *counts])), shape=(ROWS, 1000))
    return sp.csr_matrix(found)


def labels(seed: int, share: float) -> np.ndarray:
    """Return random labels."""
    return np.random.default_rng(seed).permutation(ROWS) < share * ROWS


def fitted(X: Any, y: Any, **more: Any) -> Model:
    """Return a small model."""
    return (
        StabilizedClassifier(target_nnz=5, passes=1, paths=2, random_state=0)
        .fit(X, y, **more)
        .model_
    )


def stated(model: Model) -> int:
    """Return the number of features with q below .05."""
    found = [model.why(j).q for j in range(model.n_features)]
    return sum(q is not None and q < 0.05 for q in found)


@pytest.mark.parametrize("share", [0.5, 0.05, 0.01])
@pytest.mark.parametrize("form", ["ones", "lognormal", "centred", "gaussian"])
def test_random_labels_are_no_evidence(form: str, share: float) -> None:
    found = []
    for seed in range(3):
        X: Any = columns(seed, "lognormal" if form == "lognormal" else "ones")
        if form == "centred":
            X = X.toarray() - X.mean(axis=0).A1
        elif form == "gaussian":
            X = np.random.default_rng(seed).normal(size=(ROWS, 200))
        found.append(stated(fitted(X, labels(seed, share))))
    assert sorted(found)[1] == 0
    assert max(found) <= 1


def test_random_weights_are_no_evidence() -> None:
    found = [
        stated(
            fitted(
                columns(seed, "ones"),
                labels(seed, 0.05),
                sample_weight=np.random.default_rng(seed).exponential(size=ROWS),
            )
        )
        for seed in range(3)
    ]
    assert sorted(found)[1] == 0


def test_frequent_features_keep_their_evidence() -> None:
    y = labels(0, 0.05)
    X = columns(0, "ones").tolil()
    X[:, 0] = (np.random.default_rng(1).random(ROWS) < np.where(y, 0.4, 0.1))[:, None]
    why = fitted(X.tocsr(), y).why(0)
    assert why.q is not None
    assert why.q < 1e-6


def test_one_row_of_the_rare_class_is_no_evidence() -> None:
    y = labels(0, 0.01)
    X = columns(0, "ones").tolil()
    X[:, 7] = 0.0
    X[int(np.flatnonzero(y)[0]), 7] = 1.0
    why = fitted(X.tocsr(), y).why(7)
    assert why.z is not None
    assert why.z > 9
    assert why.q == pytest.approx(1.0, abs=0.3)
    assert why.expected_false == pytest.approx(2 * 0.01 * 1000, rel=0.05)


def test_streams_and_files_have_the_same_evidence(tmp_path: Path) -> None:
    X, y = columns(0, "lognormal"), labels(0, 0.3)
    clf = StabilizedClassifier(target_nnz=5, paths=2, random_state=0)
    for part in (slice(0, 900), slice(900, None)):
        clf.partial_fit(X[part], y[part], classes=[False, True])
    whole, stream = fitted(X, y), clf.model_
    for j in range(0, 1000, 50):
        assert stream.why(j).q == pytest.approx(whole.why(j).q)
    whole.save(tmp_path / "a.thresher")
    loaded = thresher.load(tmp_path / "a.thresher")
    assert [loaded.why(j) for j in range(1000)] == [whole.why(j) for j in range(1000)]


def test_files_without_shares_have_z_only(tmp_path: Path) -> None:
    model = fitted(columns(0, "ones"), labels(0, 0.3))
    assert model.evidence is not None
    older = replace(model, evidence=replace(model.evidence, rows=None, shares=None, signal=None))
    older.save(tmp_path / "a.thresher")
    why = thresher.load(tmp_path / "a.thresher").why(0)
    assert why.z == model.why(0).z
    assert why.q is why.expected_false is None
    assert "expected by chance" not in str(why)


def test_effective_rows() -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((1000, 4))
    X[:20, 0] = 3.0
    X[:20, 1], X[0, 1] = 1.0, 50.0
    X[:, 2] = rng.normal(size=1000)
    X[:, 3] = X[:, 0] - X[:, 0].mean()
    rows = EffectiveRows(4)
    rows.add(sp.csc_matrix(X[:500]), None)
    rows.add(X[500:], None)
    numbers = rows.numbers()
    np.testing.assert_allclose(numbers[[0, 3]], 20, rtol=0.1)
    assert numbers[1] < 1.1
    assert 250 < numbers[2] < 450
    weighted = EffectiveRows(4)
    weighted.add(X, np.where(np.arange(1000) % 2, 1.0, 0.0))
    np.testing.assert_allclose(weighted.numbers()[0], 10, rtol=0.1)
    weighted.add(X, rng.exponential(size=1000))
    assert (weighted.numbers() < numbers).all()


def test_a_given_size_has_no_words_about_a_signal() -> None:
    X, y = columns(0, "ones"), labels(0, 0.3)
    clf = StabilizedClassifier(target_nnz=5, keep=1.0, min_updates=10**6, random_state=0)
    model = clf.fit(X, y).model_
    assert model.nnz == 0
    assert model.evidence is not None
    for one in (model, replace(model, evidence=replace(model.evidence, signal=None))):
        assert outputs_without_signal(one) == []
        assert no_signal_text(one) is None
        assert "no signal" not in str(one.why(0))
        assert "No signal:" not in model_page(one)
        assert "classes have no signal" not in model_page(one)
