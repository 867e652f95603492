"""Stages of the published stabilized rule: compared with the oracle, and with one machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support.paper_cases import (
    Matrices,
    alone,
    drawn,
    driven,
    job_of,
    oracle,
    parameters,
    some_rows,
)
from thresher import StabilizedClassifier
from thresher.data.labels import ManyClasses
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.messages import Question
from thresher.distributed.modes.paper_messages import AskHistogram
from thresher.errors import DivergenceError

# ---- results -------------------------------------------------------------------------------------


@given(
    data=st.data(),
    params=parameters(),
    dtype=st.sampled_from(["float32", "float64"]),
    tol=st.sampled_from([None, None, 0.3, 2.0]),
    ranges=st.integers(1, 3),
    threads=st.integers(1, 3),
)
def test_one_part_is_the_rule_on_one_machine(
    data: st.DataObject,
    params: dict[str, Any],
    dtype: str,
    tol: float | None,
    ranges: int,
    threads: int,
) -> None:
    """Weights, evidence, losses, and the numbers of every stage are bit-identical."""
    job = job_of(some_rows(data.draw, 1), ranges, **params, dtype=dtype, tol=tol)
    try:
        learner, stages = alone(job)
    except DivergenceError:
        assume(False)
    run = driven(job, threads=threads)
    (output,) = run.learned.outputs
    keys, weights = learner.weights()
    assert (output.keys.tobytes(), output.weights.tobytes()) == (keys.tobytes(), weights.tobytes())
    assert output.intercept == 0
    evidence = run.learned.evidence
    assert evidence is not None
    found = (evidence.features, evidence.probability, evidence.updates, evidence.purged)
    for ours, theirs in zip(found, learner.findings(), strict=True):
        assert ours.tobytes() == theirs.tobytes()
    loss = weight = 0.0
    for ours, theirs in zip(
        run.history, stages, strict=False
    ):  # the history has 64 of them, and some more
        assert ours["stage"] == theirs.number
        assert (ours["gravity"], ours["beta"], ours["d"], ours["burst"], ours["nonzeros"]) == (
            theirs.gravity, theirs.beta, theirs.d, theirs.burst, theirs.stable,
        )  # fmt: skip
        if theirs.weight_sum > weight:
            mean = (theirs.loss_sum - loss) / (theirs.weight_sum - weight)
            assert ours["loss"] == mean
        loss, weight = theirs.loss_sum, theirs.weight_sum
    if run.stages < 64:
        assert len(run.history) == len(stages) == run.stages == run.learned.facts["stages"]
        assert run.learned.facts["rows"] == stages[-1].rows
        assert run.learned.facts["gravity"] == stages[-1].gravity


@given(
    data=st.data(),
    params=parameters(),
    parts=st.integers(1, 3),
    ranges=st.integers(1, 3),
    hosts=st.integers(1, 3),
)
def test_parts_equal_the_oracle(
    data: st.DataObject, params: dict[str, Any], parts: int, ranges: int, hosts: int
) -> None:
    """R-13, where each path uses only the rows of its part."""
    job = job_of(some_rows(data.draw, parts), ranges, **params, dtype="float64")
    expected = oracle(job)
    assume(np.abs(expected.paths).max() < 100)  # large weights have large rounding errors
    run = driven(job, hosts)
    (output,) = run.learned.outputs
    w = np.zeros(job.width)
    w[output.keys.astype(int)] = output.weights
    np.testing.assert_allclose(w, expected.weights, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(w != 0, expected.weights != 0)
    X = np.vstack([X.toarray() for X, _, _ in job.rows.content])  # type: ignore[attr-defined]
    seen = np.flatnonzero(np.any(X != 0, axis=0))
    evidence = run.learned.evidence
    assert evidence is not None
    np.testing.assert_array_equal(evidence.features, seen)
    np.testing.assert_array_equal(evidence.probability, expected.probability[seen])
    np.testing.assert_array_equal(evidence.updates, expected.updates[seen])
    np.testing.assert_array_equal(evidence.purged, expected.purged[seen])
    np.testing.assert_array_equal(evidence.documents, np.count_nonzero(X, axis=0)[seen])
    assert run.stages == len(expected.trace)
    for record in run.history:
        stage = expected.trace[record["stage"] - 1]
        assert record["burst"] == stage.K
        assert record["gravity"] == pytest.approx(stage.gravity, rel=1e-9, abs=1e-12)
        assert record["beta"] == pytest.approx(stage.beta, rel=1e-12, abs=1e-15)
        assert record["d"] == pytest.approx(stage.d)


def test_the_estimator_gives_the_same() -> None:
    """Evidence, documents included, is that of `StabilizedClassifier.fit`."""
    rows = drawn(5, [60], 40, False, 0.2)
    X, y, _ = rows.content[0]
    params = {"variant": "paper", "paths": 5, "passes": 6, "class_weight": {-1: 2.0, 1: 0.5}}
    model = StabilizedClassifier(**params, random_state=3).fit(X, y)
    job = replace(job_of(rows, 3, **model.get_params()), seed=model._seed)
    run = driven(job)
    assert model.model_.evidence is not None
    assert run.learned.evidence is not None
    ours, theirs = run.learned.evidence.tensors(), model.model_.evidence.tensors()
    for name in theirs:
        np.testing.assert_array_equal(ours[name], theirs[name], name)
    np.testing.assert_array_equal(run.learned.outputs[0].weights, model.model_.weights)


def test_each_of_several_classes() -> None:
    """Outputs are one-vs-rest, with the same orders of rows as in the estimator."""
    ((X, _, _),) = drawn(6, [50], 20, False, 0.3).content
    y = np.arange(50) % 3
    model = StabilizedClassifier(variant="paper", paths=3, passes=2, random_state=1).fit(X, y)
    job = job_of(Matrices([(X, y, None)]), 2, **model.get_params())
    job = replace(job, labels=ManyClasses([0, 1, 2]), seed=model._seed)
    for output, learner in enumerate(model._learners):
        run = driven(replace(job, output=output))
        np.testing.assert_array_equal(run.learned.outputs[0].weights, learner.weights()[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("few", [False, True])
def test_gravity_is_found(
    monkeypatch: pytest.MonkeyPatch, dtype: str, same: bool, few: bool
) -> None:
    """The driver rarely asks questions; it asks for bits if many ratios are near the gravity."""
    asked: list[type] = []
    ask = InProcessExecutor.ask_parts

    def counted(self: InProcessExecutor, question: Question[Any]) -> list[Any]:
        asked.append(type(question))
        return ask(self, question)

    monkeypatch.setattr(InProcessExecutor, "ask_parts", counted)
    if few:
        monkeypatch.setattr("thresher.distributed.modes.paper_coordinator._FEW", 5)
        monkeypatch.setattr("thresher.distributed.modes.paper_pieces._MAX_VALUES", 50)
    rows = drawn(7, [400], 300, False, 0.2)
    if same:
        rows.content[0][0].data[:] = 1.0
    job = job_of(rows, passes=10, keep=0.0, dtype=dtype, eta0=0.05, annealing=0.0)
    run = driven(job)
    learner, stages = alone(job)
    assert run.learned.outputs[0].weights.tobytes() == learner.weights()[1].tobytes()
    assert [s["gravity"] for s in run.history[: len(stages)]] == [s.gravity for s in stages]
    assert run.learned.facts["gravity"] > 0
    assert asked.count(AskHistogram) >= (run.stages if few else 1)
    assert few or same or len(asked) < run.stages / 4
