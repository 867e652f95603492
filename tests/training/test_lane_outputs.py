"""Lanes as the outputs of a trainer: each equals a model that is trained separately."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from support.files import svmlight
from thresher import FTRLClassifier, scan
from thresher.data.labels import ManyClasses
from thresher.data.matrix_source import MatrixSource
from thresher.errors import OutOfMemoryError
from thresher.rules import core_args
from thresher.training.lane_outputs import LaneOutputs, LanePlan
from thresher.training.lanes import Lane
from thresher.training.plan import TrainingPlan
from thresher.training.records import NoRecords
from thresher.training.trainer import Trainer

RNG = np.random.default_rng(3)
X = sp.random_array((200, 15), density=0.4, rng=RNG, format="csr")
Y = (X @ RNG.normal(size=15) > 0).astype(int)
RATES = (0.05, 0.5, 2.0)


def planned(source: Any, classes: Any, seed: int = 0, **more: Any) -> LanePlan:
    """Return a plan with a lane for each rate."""
    params = FTRLClassifier(passes=3, dtype="float64").get_params() | more.pop("params", {})
    labels = ManyClasses(classes)
    plan = TrainingPlan.resolve(
        "ftrl", "classifier", params, source, owner="FTRL", known=labels, seed=seed
    )
    core = [core_args.core_parameters("ftrl", params | {"alpha": a}, None) for a in RATES]
    lanes = [Lane(*parts) for parts in core]
    return LanePlan.of(plan, lanes, averages=(False,) * 3, waiting=(False,) * 3, **more)


def trained(source: Any, plan: LanePlan, at_once: int = 2**62) -> LaneOutputs:
    """Train the lanes, and return them."""
    trainer = Trainer(plan, source, records=NoRecords(at_once))
    trainer.run()
    assert isinstance(trainer.outputs, LaneOutputs)
    assert trainer.records.history == []
    return trainer.outputs


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("at_once", [7, 2**62])
def test_lanes_equal_separate_models(copied: bool, at_once: int) -> None:
    """It does not matter whether rows are copied, and how many are learned in one call."""
    source = MatrixSource(X, Y)
    source.chunk = 300
    block = source.block if copied else None
    alone = FTRLClassifier(passes=3, dtype="float64", shuffle="each", random_state=5)
    plan = planned(source, [0, 1], seed=int(np.random.RandomState(5).randint(2**31)),
                   block=block)  # fmt: skip
    for output, rate in zip(trained(source, plan, at_once).outputs(), RATES, strict=True):
        model = alone.set_params(alpha=rate).fit(X, Y).model_
        assert output.keys.tolist() == model.indices.tolist()
        np.testing.assert_allclose(output.weights, model.weights, rtol=1e-10)
        np.testing.assert_allclose(output.intercept, model.intercept[0], rtol=1e-10)


def test_lanes_learn_the_rows_that_their_clock_sees() -> None:
    source = MatrixSource(X, Y)
    half = np.arange(200) % 2 == 0
    seen = np.column_stack([half, ~half]).astype(np.uint8)
    plan = planned(source, [0, 1], params={"shuffle": False})
    lanes = [Lane(plan.lanes[0].numbers, plan.lanes[0].words, clock) for clock in (0, 1)]
    for block in (None, source.block):
        both = LanePlan.of(
            plan, lanes, averages=(False,) * 2, waiting=(False,) * 2, block=block,
            seen=lambda targets, row, rows: seen if rows is None else seen[rows],
        )  # fmt: skip
        for output, own in zip(trained(source, both).outputs(), (half, ~half), strict=True):
            alone = FTRLClassifier(alpha=0.05, passes=3, dtype="float64", shuffle=False)
            np.testing.assert_allclose(
                output.weights, alone.fit(X[own], Y[own]).model_.weights, rtol=1e-10
            )


def test_predictions_before_rows_are_learned(tmp_path: Any) -> None:
    """They are passed on in the order of the rows."""
    source = scan(svmlight(tmp_path / "rows.svm", rows=60))
    plan = planned(source, [-1, 1], params={"passes": 1, "shuffle": False})
    trainer, found = Trainer(plan, source, records=NoRecords(13)), []
    assert isinstance(trainer.outputs, LaneOutputs)
    trainer.outputs.before = lambda raw, targets, first, last: found.append((first, last, raw))
    trainer.run()
    assert [(first, last) for first, last, _ in found] == [
        (0, 13), (13, 26), (26, 39), (39, 52), (52, 60)
    ]  # fmt: skip
    assert found[0][2][0].tolist() == [0.0] * 3
    assert found[-1][2].shape == (8, 3)


def test_errors_in_copied_rows_name_the_original_row() -> None:
    bad = X.copy()
    bad.data[bad.indptr[123]] = np.nan
    source = MatrixSource(bad, Y)
    with pytest.raises(thresher.DataError, match="row 123: "):
        trained(source, planned(source, [0, 1], block=source.block))


def test_lanes_do_not_exceed_the_memory_limit(tmp_path: Any) -> None:
    source = scan(svmlight(tmp_path / "rows.svm"))
    for store in ("dense", "hashed"):
        plan = planned(source, [-1, 1], params={"store": store}, limit=100)
        with pytest.raises(OutOfMemoryError, match=r"3 models need .* memory_limit is 100; train"):
            trained(source, plan)


def test_lanes_continue_from_their_states() -> None:
    """After another pass, restored lanes have the same weights as the original ones."""
    source = MatrixSource(X, Y)
    first = trained(source, planned(source, [0, 1], block=source.block))
    other = planned(source, [0, 1], block=source.block).make(X.shape[1])
    other.restore(first.states())
    for outputs in (first, other):
        again = planned(source, [0, 1], block=source.block)
        Trainer(again, source, outputs=outputs, records=NoRecords()).run()
    for found, expected in zip(other.outputs(), first.outputs(), strict=True):
        np.testing.assert_array_equal(found.weights, expected.weights)
    with pytest.raises(ValueError, match="zip"):
        other.restore([])
