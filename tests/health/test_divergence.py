"""Detection of divergence, by itself and in every streaming fit."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import thresher
from thresher import DivergenceError, Progress
from thresher.health import DivergenceWarning, DivergenceWatch


def _watched(estimator: Any, X: Any, y: np.ndarray) -> tuple[int | None, bool]:
    """Fit; return the number of examples before the warning, and whether the fit failed."""
    warned: list[int] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        def see(record: Progress) -> None:
            if caught and not warned:
                warned.append(record.examples)

        try:
            estimator.set_params(callback=see).fit(X, y)
            failed = False
        except DivergenceError:
            failed = True
    assert len(caught) <= 1
    assert all(warning.category is DivergenceWarning for warning in caught)
    return (warned[0] if warned else None), failed


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", ["TruncatedGradient", "FTRL", "ForwardBackward", "AveragedSGD"])
def test_no_warning_on_healthy_streams(rule: str, seed: int) -> None:
    """This holds even if the noise has infinite variance, or consists of rare spikes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 20))
    X[:, 5:] *= rng.random((1000, 15)) < 0.1
    signal = X[:, 0] - 2 * X[:, 1]
    spikes = 1000.0 * (rng.random(1000) < 0.003)
    for noise in (rng.normal(size=1000), rng.standard_cauchy(1000), spikes):
        y = signal + noise
        for loss in ("squared", "square", "absolute", "huber", "quantile"):
            if rule == "AveragedSGD" and loss in ("squared", "square"):
                continue  # diverges
            reg = getattr(thresher, f"{rule}Regressor")(loss=loss, passes=3, random_state=seed)
            assert _watched(reg, X, y) == (None, False), loss
        labels = np.where(y > 0, 1.0, -1.0)
        for loss in ("logistic", "hinge"):
            clf = getattr(thresher, f"{rule}Classifier")(loss=loss, passes=3, random_state=seed)
            assert _watched(clf, X, labels) == (None, False), loss


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("eta0", "latest"), [(0.065, 2048), (0.08, 512), (0.1, 256), (0.15, 256)])
def test_warning_before_the_weights_overflow(eta0: float, latest: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 30))
    y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=20_000)
    reg = thresher.TruncatedGradientRegressor(eta0=eta0, passes=2, random_state=seed)
    warned, failed = _watched(reg, X, y)
    assert failed
    assert warned is not None
    assert warned <= latest


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_partial_fit_warns_once_before_the_weights_overflow(size: int) -> None:
    """Batches have any size, and the estimator is pickled between batches."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4096, 30))
    y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=4096)
    reg = thresher.TruncatedGradientRegressor(eta0=0.08)
    warned, failed = 4096, False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for begin in range(0, 4096, size):
            try:
                reg.partial_fit(X[begin : begin + size], y[begin : begin + size])
            except DivergenceError:
                failed = True
                break
            reg = pickle.loads(pickle.dumps(reg)) if begin < 200 else reg
            warned = min(warned, begin) if caught else warned
    assert failed
    assert [warning.category for warning in caught] == [DivergenceWarning]
    assert warned <= 1000


def test_several_outputs_and_a_warm_start_are_watched() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 30))
    labels = rng.integers(0, 3, 1000)
    hot = thresher.TruncatedGradientClassifier(loss="squared", eta0=0.075, passes=1, random_state=0)
    with pytest.warns(DivergenceWarning, match="but 0.5 if zero is predicted;") as caught:
        hot.fit(X, labels)
    assert len(caught) == 1
    warm = thresher.FTRLClassifier(passes=2, random_state=0, warm_start=True).fit(X, labels)
    assert _watched(warm, X, labels) == (None, False)


def test_expect_updates_the_loss_of_predicting_zero() -> None:
    watch = DivergenceWatch()
    watch.expect(1.0, 300.0)
    watch.expect(math.inf, 10.0)
    watch.expect(5.0, 100.0)
    watch.expect(9.0, 0.0)
    assert watch.zero_loss == pytest.approx(2.0)
    later = DivergenceWatch(1.0, examples=10_000)
    assert _warnings_at(later, [(10_050, 50.0), (10_128, 0.5), (10_256, 0.5)]) == []


def _warnings_at(watch: DivergenceWatch, records: list[tuple[int, float]]) -> list[int]:
    """Return the number of examples of the records that gave a warning."""
    made = [Progress(examples, loss, None, 0.1, 0.0) for examples, loss in records]
    return [record.examples for record in made if watch.see(record) is not None]


def test_conditions_of_a_warning() -> None:
    rising = [(128, 20.0), (256, 50.0), (512, 120.0), (1024, 300.0)]
    assert _warnings_at(DivergenceWatch(1.0), rising) == [256]  # once
    assert _warnings_at(DivergenceWatch(1.0, patience=3), rising) == [512]
    assert _warnings_at(DivergenceWatch(1.0, factor=25.0), rising) == [512]
    assert _warnings_at(DivergenceWatch(50.0), rising) == []
    assert _warnings_at(DivergenceWatch(1.0), [(128, 20.0), (256, 15.0), (512, 31.0)]) == []
    assert _warnings_at(DivergenceWatch(1.0), [(128, 20.0), (256, 30.0), (512, 40.0)]) == []
    assert _warnings_at(DivergenceWatch(1.0), [(128, 0.1), (256, math.nan)]) == [256]
    assert _warnings_at(DivergenceWatch(1.0), [(128, 0.1), (130, math.inf)]) == [130]
    assert _warnings_at(DivergenceWatch(1.0), [(128, 2e12)]) == [128]
    assert _warnings_at(DivergenceWatch(1.0), [(128, 2e6), (256, 1e6)]) == []
    assert _warnings_at(DivergenceWatch(), [(128, 1.0), (256, 20.0), (512, 50.0)]) == [512]
    assert _warnings_at(DivergenceWatch(0.0), [(128, 1.0), (256, 20.0), (512, math.nan)]) == [512]


def test_short_records_are_joined() -> None:
    """Two rows with a large loss at the end of a pass are not divergence."""
    assert (
        _warnings_at(DivergenceWatch(1.0), [(998, 0.5), (999, 50.0), (1000, 900.0), (1100, 0.5)])
        == []
    )


def test_the_zero_loss_of_a_record_is_used() -> None:
    watch = DivergenceWatch(1.0)
    for examples, loss in ((128, 20.0), (256, 30.0), (512, 40.0)):
        assert watch.see(Progress(examples, loss, None, 0.1, 0.0), zero_loss=10.0) is None
    message = watch.see(Progress(1024, math.inf, None, 0.25, 0.0))
    assert message is not None
    assert "lower the rate (now 0.25)" in message
