"""`Model.explain`: contributions that add up to the score."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import thresher
from support.linear_models import made
from thresher import (
    FTRLClassifier,
    FTRLRegressor,
    TruncatedGradientClassifier,
    scan,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 12)) * (RNG.random((200, 12)) < 0.5)
SIGNAL = X[:, 0] - X[:, 3]


def is_sum(why):
    """Tell whether the terms add up to the score, as the class says."""
    terms = [why.intercept, *(one.contribution for one in why.contributions)]
    bound = (len(terms) + 1) * 2.0**-52 * math.fsum(map(abs, terms))
    return abs(math.fsum(terms) - why.score) <= bound


values = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(st.tuples(values, values), min_size=1, max_size=40), values)
def test_the_terms_add_up_to_the_score_of_any_row(pairs, intercept):
    weights, row = np.array(pairs).T
    model = made(weights, intercept)
    why = model.explain(row)
    assert why.score == model.decision_function(row[None, :])[0]
    assert is_sum(why)
    expected = {i: w * x for i, (w, x) in enumerate(pairs) if w != 0 and x != 0}
    assert {one.name: one.contribution for one in why.contributions} == expected
    sizes = [abs(one.contribution) for one in why.contributions]
    assert sizes == sorted(sizes, reverse=True)
    assert why.without_weight == sum(x != 0 for w, x in pairs if w == 0)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "clipped_square"])
def test_losses_of_classifiers(loss):
    model = TruncatedGradientClassifier(loss=loss, random_state=0).fit(X, SIGNAL > 0).model_
    for row in X[:20]:
        why = model.explain(row)
        assert why.score == model.decision_function(row[None, :])[0]
        assert is_sum(why)
        assert why.prediction == model.predict(row[None, :])[0]
        assert why.label is True
        other = model.explain(row, label=False)
        assert other.score == -why.score
        assert other.label is False
        assert [one.contribution for one in other.contributions] == [
            -one.contribution for one in why.contributions
        ]


@pytest.mark.parametrize("loss", ["squared", "poisson", "clipped_square"])
def test_losses_of_regressors(loss):
    y = np.clip(SIGNAL, 0, 1)
    model = FTRLRegressor(loss=loss, random_state=0).fit(X, y).model_
    for row in X[:20]:
        why = model.explain(row)
        assert why.score == model.decision_function(row[None, :])[0]
        assert is_sum(why)
        assert why.prediction == model.predict(row[None, :])[0]
        assert why.label is None


def test_each_class_has_its_own_terms():
    y = np.digitize(SIGNAL, [-0.5, 0.5])
    model = FTRLClassifier(l1=0.1, random_state=0).fit(X, np.array(["a", "b", "c"])[y]).model_
    scores = model.decision_function(X)
    for row, own in zip(X[:20], scores, strict=False):
        why = model.explain(row)
        assert why.label == why.prediction == "abc"[own.argmax()]
        for k, label in enumerate("abc"):
            why = model.explain(row, label=label)
            assert why.score == own[k]
            assert why.label == label
            assert is_sum(why)
    with pytest.raises(ValueError, match=r"label must be one of \['a', 'b', 'c'\]; got 'd'"):
        model.explain(X[0], label="d")


def test_rows_with_any_number_of_labels():
    Y = np.column_stack([SIGNAL > 0, SIGNAL < 0.5, X[:, 5] > 0]).astype(int)
    model = TruncatedGradientClassifier(random_state=0).fit(X, Y).model_
    for row in X[:10]:
        why = model.explain(row)
        own = model.decision_function(row[None, :])[0]
        assert why.label == own.argmax()
        assert why.prediction == np.flatnonzero(own >= 0).tolist()
        assert model.explain(row, label=2).score == own[2]
        shown = ", ".join(map(str, why.prediction)) or "no label"
        assert repr(why).startswith(f"prediction: {shown}; the score is for {why.label}\n")
    assert {len(model.explain(row).prediction) for row in X} >= {1, 2}
    none = min((10 * row for row in (*X, *-X)), key=lambda row: len(model.explain(row).prediction))
    assert repr(model.explain(none)).startswith("prediction: no label; the score is for ")


def test_all_forms_of_a_row_give_the_same():
    model = FTRLClassifier(random_state=0).fit(X, SIGNAL > 0).model_
    names = [f"f{k}" for k in range(12)]
    wanted = model.explain(X[4], names=names)
    assert wanted.contributions[0].name in ("f0", "f3")
    sparse = sp.csr_matrix(X)
    twice = sp.csr_matrix(
        (np.repeat(sparse[4].data / 2, 2), np.repeat(sparse[4].indices, 2), [0, 2 * sparse[4].nnz]),
        shape=(1, 12),
    )
    for row in (X[4:5], X[4].tolist(), sparse[4], sparse[4].tocoo(), sp.csr_array(sparse[4])):
        assert model.explain(row, names=names) == wanted
    assert model.explain(twice, names=names).contributions == wanted.contributions
    as_dict = {k: float(X[4, k]) for k in range(12) if X[4, k]}
    found = model.explain(as_dict)
    assert [one[1:] for one in found.contributions] == [one[1:] for one in wanted.contributions]
    assert found == model.explain([as_dict])


def test_rows_of_frames():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    frame = pd.DataFrame({"age": X[:, 0], "colour": np.where(X[:, 3] > 0, "red", "blue")})
    model = FTRLClassifier(random_state=0, l1=0.0).fit(frame, SIGNAL > 0).model_
    why = model.explain(frame.iloc[[7]])
    assert why == model.explain(frame.iloc[7])
    assert why == model.explain(pl.from_pandas(frame)[7])
    assert why.score == model.decision_function(frame.iloc[[7]])[0]
    assert {one.name for one in why.contributions} <= {"age", "colour=red", "colour=blue"}
    assert is_sum(why)
    numbers = pd.DataFrame(X, columns=[f"f{k}" for k in range(12)])
    model = FTRLClassifier(random_state=0).fit(numbers, SIGNAL > 0).model_
    assert model.explain(numbers.iloc[7][::-1]) == model.explain(numbers.iloc[[7]])


def test_a_row_of_vw_text(tmp_path):
    (tmp_path / "a.vw").write_text("1 |a x y:2 |b z\n-1 |a w |b z\n" * 30)
    (tmp_path / "b.vw").write_text("1 |a x y:3 new |b z\n")
    estimator = FTRLClassifier(store="hashed", l1=0.0)
    model = estimator.fit(scan(tmp_path / "a.vw", interactions=["ab"])).model_
    row = scan(tmp_path / "b.vw", interactions=["ab"])
    why = model.explain(row)
    assert {one.name for one in why.contributions} >= {"a^x", "a^y"}
    assert next(one for one in why.contributions if one.name == "a^y").value == 3.0
    assert why.score == model.decision_function(row)[0]
    assert why.without_weight >= 1


def test_one_row_only_and_only_good_ones():
    model = made([1.0, 2.0])
    for rows, found in ((np.zeros((3, 2)), 3), (np.zeros((0, 2)), 0)):
        with pytest.raises(thresher.DataError, match=f"explain takes one row; got {found}"):
            model.explain(rows)
    with pytest.raises(ValueError, match="X must have 2 columns"):
        model.explain([1.0, 2.0, 3.0])
    with pytest.raises(thresher.DataError, match="feature 1 is NaN"):
        model.explain([1.0, np.nan])
    with pytest.raises(ValueError, match="no classes"):
        FTRLRegressor().fit(X, SIGNAL).model_.explain(X[0], label=1)


def test_texts_and_tables():
    model = made(np.arange(1.0, 31.0), names={k: f"n{k}" for k in range(30)} | {29: "bad\x1b"})
    why = model.explain(np.append(np.ones(30), [])[:30])
    lines = repr(why).splitlines()
    assert lines[0] == "prediction: yes; the score is for yes"
    assert lines[1].split() == ["feature", "weight", "value", "contribution"]
    assert lines[2].split() == ["bad\\x1b", "+30", "1", "+30"]
    assert lines[22].split() == ["(10", "more)", "+55"]
    assert lines[-2].split() == ["(intercept)", "+0.25"]
    assert lines[-1].split() == ["(score)", "+465.25"]
    assert len(set(map(len, lines[1:]))) == 1
    facts = json.loads(json.dumps(why.to_dict()))
    assert facts["score"] == why.score
    assert facts["contributions"][1] == {
        "name": "n28", "weight": 29.0, "value": 1.0, "contribution": 29.0,
    }  # fmt: skip
    assert why.top(2) == why.contributions[:2]
    with pytest.raises(thresher.ParameterError, match="count must be a whole number >= 0; got -1"):
        why.top(-1)
    for kind in ("arrow", "pandas", "polars"):
        pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind))
        table = why.to_frame(kind)
        assert table.shape == (30, 4)
        assert list(table["contribution"][:2]) in ([30.0, 29.0],) or kind == "arrow"
    with pytest.raises(thresher.ParameterError, match="kind must be one of arrow, pandas, polars"):
        why.to_frame("excel")


def test_a_model_without_weights():
    why = made([0.0, 0.0]).explain([1.0, 0.0])
    assert (why.contributions, why.score, why.without_weight) == ((), 0.25, 1)
    assert "(1 without weight)" in repr(why)
    assert why.to_frame("arrow").num_rows == 0
