"""The mean of models, compared with a naive sum; and models that have no mean."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from support.files import called, svmlight, vw
from thresher import FTRLClassifier, FTRLRegressor, Model, ParameterError, Progress

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 8))
Y = X[:, 0] - X[:, 3]


def model_of(weights: dict[int, float], rows: int, bias: float, **more: Any) -> Model:
    keys = sorted(weights)
    return Model(
        indptr=np.array([0, len(keys)]),
        indices=np.array(keys, np.uint64),
        weights=np.array([weights[key] for key in keys]),
        intercept=np.array([bias]),
        n_features=20,
        classes=np.array([-1, 1]),
        loss="logistic",
        parameters={"rule": "ftrl", "first": 1, **more},
        history=[Progress(rows, 0.5, len(keys), 0.1, 0.0)],
        names={key: f"f{key}" for key in keys},
    )


NUMBERS = st.floats(-1e3, 1e3).filter(bool)
WEIGHTS = st.dictionaries(st.integers(0, 19), NUMBERS, max_size=8)


@settings(max_examples=100)
@given(parts=st.lists(st.tuples(WEIGHTS, st.integers(1, 10**6), NUMBERS), min_size=2, max_size=4))
def test_each_weight_is_the_mean_by_rows(parts: list[tuple[dict[int, float], int, float]]) -> None:
    merged = thresher.merge([model_of(*part) for part in parts])
    total = sum(rows for _, rows, _ in parts)
    found = dict(zip(merged.indices.tolist(), merged.weights.tolist(), strict=True))
    for key in range(20):
        exact = sum(Fraction(own.get(key, 0.0)) * rows for own, rows, _ in parts) / total
        size = sum(abs(own.get(key, 0.0)) * rows for own, rows, _ in parts) / total
        assert abs(found.get(key, 0.0) - float(exact)) <= 1e-15 * size * len(parts) * 2
    bias = float(sum(Fraction(own) * rows for _, rows, own in parts) / total)
    assert merged.intercept[0] == pytest.approx(bias, rel=1e-12, abs=1e-12)
    assert not (merged.weights == 0).any()
    assert merged.history[-1].examples == total
    assert set(merged.names or {}) == set(found)
    assert merged.parameters["merged"] == len(parts)


def test_a_model_merged_with_itself_is_the_same() -> None:
    for y in (np.digitize(Y, [-0.5, 0.5]), Y > 0):
        model = FTRLClassifier(random_state=0).fit(X, y).model_
        merged = thresher.merge([model, model])
        for name in ("indptr", "indices", "classes"):
            np.testing.assert_array_equal(getattr(merged, name), getattr(model, name))
        for name in ("weights", "intercept"):
            np.testing.assert_allclose(getattr(merged, name), getattr(model, name), rtol=4e-16)
        np.testing.assert_array_equal(merged.predict(X), model.predict(X))
    values = FTRLRegressor(random_state=0).fit(X, Y).model_
    np.testing.assert_array_equal(thresher.merge([values] * 3, [1, 0, 0]).weights, values.weights)


def test_given_weights_replace_the_rows() -> None:
    one, other = model_of({3: 1.0}, 10, 0.0), model_of({3: 5.0, 4: 2.0}, 1000, 1.0)
    merged = thresher.merge([one, other], [3, 1])
    assert merged.weights.tolist() == [2.0, 0.5]
    assert merged.intercept.tolist() == [0.25]
    large = thresher.merge([one, other], [3e307, 1e307])  # whose sums are infinite
    assert large.weights == pytest.approx([2.0, 0.5])
    huge = [model_of({3: value}, 1, 0.0) for value in (1e300, 1e-300)]
    assert thresher.merge(huge, [1.7e308, 1.7e308]).weights == pytest.approx([5e299])
    for wrong in ([1], [1, -1], [0, 0], [1, float("nan")], [1, 2, 3]):
        with pytest.raises(ParameterError, match=r"weights must be 2 numbers >= 0, not all 0"):
            thresher.merge([one, other], wrong)
    with pytest.raises(ParameterError, match="models must be a list of at least two models or"):
        thresher.merge("a.thresher")  # type: ignore[arg-type, unused-ignore]
    unknown = replace(one, history=())
    with pytest.raises(ParameterError, match="model 2 does not say how many rows"):
        thresher.merge([one, unknown])
    assert thresher.merge([one, unknown], [1, 1]).history == []


def test_parameters_that_differ_are_left_out_and_the_estimator_predicts() -> None:
    one = FTRLClassifier(l1=0.1, random_state=0).fit(X[:150], Y[:150] > 0).model_
    other = FTRLClassifier(l1=0.2, random_state=0).fit(X[150:], Y[150:] > 0).model_
    merged = thresher.merge([one, other])
    assert "l1" not in merged.parameters
    assert merged.parameters["rule"] == "ftrl"
    estimator = merged.estimator()
    assert estimator.score(X, Y > 0) > 0.9
    with pytest.raises(ParameterError, match="no state of a learner"):
        estimator.partial_fit(X, Y > 0)


def test_a_merged_model_is_about_as_good_as_one_of_all_rows(tmp_path: Path) -> None:
    wide = RNG.normal(size=(4000, 40))
    effects = RNG.normal(size=40)
    y = wide @ effects + RNG.logistic(size=4000) > 0
    parts = [slice(0, 1000), slice(1000, 1500), slice(1500, 3000)]
    learner = FTRLClassifier(random_state=0)
    for number, part in enumerate(parts):
        learner.fit(wide[part], y[part]).model_.save(tmp_path / str(number))
    merged = thresher.merge([tmp_path / str(number) for number in range(3)])
    whole = learner.fit(wide[:3000], y[:3000]).model_
    scores = [(model.predict(wide[3000:]) == y[3000:]).mean() for model in (merged, whole)]
    assert scores[0] > scores[1] - 0.02


def test_what_differs_is_said() -> None:
    y = Y > 0

    def refused(one: Model, other: Model, message: str) -> None:
        with pytest.raises(ParameterError, match=f"models cannot be merged: {message}"):
            thresher.merge([one, other])

    one = FTRLClassifier(random_state=0).fit(X, y).model_
    ada = thresher.AdaGradClassifier(random_state=0).fit(X, y).model_
    refused(one, ada, "the rule is ftrl in model 1, and adagrad in model 2")
    hinge = FTRLClassifier(loss="hinge", random_state=0).fit(X, y).model_
    refused(one, hinge, "the loss is logistic in model 1, and hinge in model 2")
    words = FTRLClassifier(random_state=0).fit(X, np.where(y, "a", "b")).model_
    refused(one, words, r"the list of classes is \[False, True\] in model 1, and \['a', 'b'\] in")
    narrow = FTRLClassifier(random_state=0).fit(X[:, :5], y).model_
    refused(one, narrow, "the number of features is 8 in model 1, and 5 in model 2")
    frame = FTRLClassifier(random_state=0).fit(pd.DataFrame(X, columns=list("abcdefgh")), y).model_
    refused(one, frame, r"frame_columns is not set in model 1, and \[")
    bits = model_of({1: 1.0}, 10, 0.0, bits=18), model_of({1: 1.0}, 10, 0.0, bits=20)
    refused(*bits, "bits is 18 in model 1, and 20 in model 2")
    sets = model_of({1: 1.0}, 10, 0.0), model_of({1: 1.0}, 10, 0.0, interactions='["ab"]')
    refused(*sets, r"interactions is not set in model 1, and \[\"ab\"\] in model 2")
    hashed = replace(model_of({1: 1.0}, 10, 0.0), n_features=2**64)
    refused(sets[0], hashed, "the kind of features is numbered in model 1, and named in model 2")
    refused(one, sets[0], r"the list of classes|the form of rows")
    with pytest.raises(ParameterError, match="merging needs at least two models; got 1"):
        thresher.merge([one])
    for learner in (thresher.OnePassClassifier(), thresher.CoordinateDescentClassifier()):
        model = learner.fit(X, y).model_
        with pytest.raises(ParameterError, match=r"cannot be merged: .* can be averaged: trunc"):
            thresher.merge([model, model])


def test_the_command(tmp_path: Path) -> None:
    for day, seed in (("monday", 1), ("tuesday", 2)):
        data = vw(tmp_path / f"{day}.vw", rows=300 * seed, seed=seed)
        called("train", data, "-m", tmp_path / day, "--rule", "ftrl", "--quiet")
    both = ["merge", tmp_path / "monday", tmp_path / "tuesday", "-m", tmp_path / "both"]
    done = called(*both)
    found = thresher.load(tmp_path / "both")
    assert done.stdout == (
        f"2 models, 900 examples, {found.nnz} nonzero weights -> {tmp_path / 'both'}\n"
    )
    expected = thresher.merge([tmp_path / "monday", tmp_path / "tuesday"])
    assert found.weights.tolist() == expected.weights.tolist()
    assert found.names == expected.names
    called("predict", tmp_path / "both", tmp_path / "monday.vw")
    called(*both, "--weights", "1,3", "--quiet")
    assert thresher.load(tmp_path / "both").weights.tolist() != expected.weights.tolist()
    content = (tmp_path / "both").read_bytes()
    done = called(*both, "--weights", "1,x", code=2)
    assert "--weights must be numbers with commas between them" in done.stderr
    done = called(*both, "--weights", "1", code=2)
    assert "--weights must be 2 numbers >= 0" in done.stderr
    called("train", svmlight(tmp_path / "rows"), "-m", tmp_path / "numbered", "--rule", "ftrl")
    done = called(
        "merge", tmp_path / "monday", tmp_path / "numbered", "-m", tmp_path / "both", code=2
    )
    assert f"named in {tmp_path / 'monday'}, and numbered in {tmp_path / 'numbered'}" in done.stderr
    assert (tmp_path / "both").read_bytes() == content
