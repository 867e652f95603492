"""`Model.why`, and the check of column names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import thresher
from thresher import FTRLClassifier, StabilizedClassifier
from thresher.data.frame_reading import NewColumnsWarning
from thresher.model.evidence import Why

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 30))
X[:, 29] = 0.0
X[:3, 28], X[3:, 28] = 1.0, 0.0
Y = np.where(X[:, 3] - X[:, 7] > 0, "b", "a")
NAMES = [f"f{j}" for j in range(30)]
THREE = np.digitize(X[:, 3] - X[:, 7], [-0.5, 0.5])


def stabilized(**params: Any) -> StabilizedClassifier:
    """Return a small estimator."""
    return StabilizedClassifier(random_state=0, passes=2, **params)


# ---- why -----------------------------------------------------------------------------------------


def test_why_of_the_robust_variant() -> None:
    model = stabilized(target_nnz=2, min_updates=5).fit(X, Y).model_
    assert model.evidence is not None
    assert model.indices.tolist() == [3, 7]
    for j in range(28):
        why = model.why(j)
        if j in (3, 7):
            assert why.reason is None
            assert why.z is not None
            assert abs(why.z) > 5
            assert f", z = {why.z:.1f} (" in str(why)
            assert str(why).endswith(f" features expected by chance, q = {why.q:.2g})")
            continue
        assert why.purged_at is not None
        assert why.selection_probability is not None
        expected = (
            "others ranked higher"
            if why.selection_probability >= 0.5
            else "its probability is below keep = 0.5"
        )
        assert str(why).endswith(f", purged at stage {why.purged_at}: {expected}")
    told = str(model.why(28))
    assert told.startswith("28: weight 0, in 3 training rows, z = ")
    assert told.endswith("), never judged: too few rows have it")
    assert str(model.why(29)) == "29: weight 0, in 0 training rows, 0 updates"


def test_why_of_the_published_variant() -> None:
    model = stabilized(variant="paper", keep=0.9, loss="logistic").fit(X, Y).model_
    found = [model.why(j) for j in range(29)]
    purged = [why for why in found if why.purged_at is not None]
    assert purged
    for why in purged:
        assert why.reason == "its probability is below keep = 0.9"
    assert all(why.reason is None for why in found if why.purged_at is None and why.updates)


def test_evidence_is_saved_and_loaded(tmp_path: Path) -> None:
    model = stabilized(target_nnz=2).fit(X, Y).model_
    model.save(tmp_path / "a.thresher")
    loaded = thresher.load(tmp_path / "a.thresher")
    assert [loaded.why(j) for j in range(30)] == [model.why(j) for j in range(30)]


def test_why_without_evidence_has_only_the_weight() -> None:
    model = FTRLClassifier(random_state=0).fit(X, Y).model_
    assert model.why(3) == Why(3, model.why(3).weight)
    assert str(model.why(29)) == "29: weight 0"
    assert str(Why("a", 0.0, purged_at=3)) == "a: weight 0, purged at stage 3"


@pytest.mark.parametrize("feature", [1.5, None, True, np.float64(3.0), [3], b"f3"])
def test_features_are_names_or_numbers(feature: Any) -> None:
    model = FTRLClassifier(random_state=0).fit(X, Y).model_
    with pytest.raises(TypeError, match="feature must be a name or the number of a column; got"):
        model.why(feature)


def test_numbers_of_features() -> None:
    model = FTRLClassifier(random_state=0).fit(X, Y).model_
    assert model.why(np.int64(3)) == model.why(np.uint8(3)) == model.why(3)
    for bad in (-1, 30):
        with pytest.raises(ValueError, match=rf"feature must be in 0\.\.29; got {bad}"):
            model.why(bad)


def test_names_of_all_features() -> None:
    model = stabilized(target_nnz=2).fit(X, Y).model_
    assert model.why("f5", names=NAMES) == model.why(5)._replace(feature="f5")
    assert model.why(5, names=np.array(NAMES)) == model.why(5)._replace(feature="f5")
    with pytest.raises(ValueError, match="no feature is named 'g'"):
        model.why("g", names=NAMES)
    with pytest.raises(ValueError, match="names must be 30, one for each feature; got 2"):
        model.why(5, names=["a", "b"])
    with pytest.raises(ValueError, match=r"named 'f5'; .* pass names=, or the number"):
        model.why("f5")


def test_several_classes_need_a_label() -> None:
    model = FTRLClassifier(random_state=0).fit(X, THREE).model_
    with pytest.raises(ValueError, match=r"label= must be given.*one of \[0, 1, 2\]"):
        model.why(3)
    with pytest.raises(ValueError, match=r"label 5 has no output; .*\[0, 1, 2\]"):
        model.why(3, label=5)
    assert model.why(3, label=0).weight < 0 < model.why(3, label=2).weight


# ---- columns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
def test_columns_are_found_by_their_names(frame: Any, y: Any, tmp_path: Path) -> None:
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    clf = FTRLClassifier(l1=20.0, random_state=0).fit(pd.DataFrame(columns), y)
    clf.model_.save(tmp_path / "a.thresher")
    used = set(clf.model_.indices.tolist())
    first = min(used)
    assert len(used) < 28
    for model in (clf.model_, thresher.load(tmp_path / "a.thresher")):
        expected = model.predict(X)
        for same in (frame(columns), pd.DataFrame(X), X.tolist(), sp.csr_matrix(X)):
            np.testing.assert_array_equal(model.predict(same), expected)
        turned = frame(dict(reversed(columns.items())))
        for method in (model.predict, model.decision_function, model.predict_proba):
            np.testing.assert_array_equal(method(turned), method(X))
        renamed = {name if j in used else f"other {j}": X[:, j] for j, name in enumerate(NAMES)}
        with pytest.warns(NewColumnsWarning, match=r"'other \d+' are new: .* with weight 0"):
            np.testing.assert_array_equal(model.predict(frame(renamed)), expected)
        without = {name: X[:, j] for j, name in enumerate(NAMES) if j != first}
        with pytest.raises(ValueError, match=f"column 'f{first}' is missing: the training data"):
            model.predict(frame(without))


def test_models_without_names_accept_any_column_names() -> None:
    model = FTRLClassifier(random_state=0).fit(X, Y).model_
    frame = pd.DataFrame(X, columns=NAMES[::-1])
    np.testing.assert_array_equal(model.predict(frame), model.predict(X))
