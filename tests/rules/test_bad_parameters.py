"""Parameters that are out of range, of the wrong type, or contradict each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier

import thresher
from thresher import (
    AveragedSGDClassifier,
    AveragedSGDRegressor,
    DivergenceError,
    ParameterError,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)
from thresher.estimators import __all__ as ESTIMATORS
from thresher.health import DivergenceWarning
from thresher.losses import CLASSIFIER_LOSSES, REGRESSOR_LOSSES
from thresher.rules import RULES, Parameter

RNG = np.random.default_rng(6)
X = RNG.normal(size=(40, 4))
Y = X[:, 0] - X[:, 2]
LABELS = np.where(Y > 0, "b", "a")


def table(name: str) -> dict[str, Parameter]:
    """Return the parameters of an estimator, from the table of rules."""
    parameters = dict(RULES[getattr(thresher, name).rule].parameters)
    if name.endswith("Regressor"):
        parameters = {k: p for k, p in parameters.items() if not p.of_classifiers}
    return parameters


def refused_values(parameter: Parameter) -> Iterator[Any]:
    """Yield values slightly and far outside the allowed range, and values of other types."""
    if not parameter.optional:
        yield None
    if parameter.kind in ("number", "integer"):
        yield from (math.nan, "nonsense", "0.5", [1], True, 1j)
        if parameter.low > -math.inf:
            yield from (parameter.low - 1, -1e300, -math.inf)
            if parameter.open_low:
                yield parameter.low
        if parameter.high < math.inf:
            yield from (parameter.high * 2 + 1, math.inf, 1e300)
        if parameter.kind == "integer":
            yield from (parameter.low + 0.5, float(parameter.low))
    elif parameter.kind == "flag":
        yield from (0, 1, "yes", 1.0)
    elif parameter.kind == "choice":
        yield from ("nonsense", "", 0, 1, True, ("each",), str(parameter.choices[0]).upper())


CASES = [
    (name, key, value)
    for name in ESTIMATORS
    for key, parameter in table(name).items()
    for value in refused_values(parameter)
]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_has_bad_values_here(name: str) -> None:
    covered = {key for case, key, _ in CASES if case == name}
    assert covered | {"class_weight", "random_state", "callback", "levels"} >= set(table(name))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_bad_values_are_refused(name: str) -> None:
    """The error names the estimator, the parameter, what is allowed, and what it got."""
    for case, key, value in CASES:
        if case != name:
            continue
        estimator = getattr(thresher, name)(**{key: value})
        labels = LABELS if is_classifier(estimator) else Y
        more = {"classes": ["a", "b"]} if is_classifier(estimator) else {}
        calls = [lambda e=estimator, y=labels: e.fit(X, y)]
        if hasattr(estimator, "partial_fit"):
            calls.append(lambda e=estimator, y=labels, m=more: e.partial_fit(X, y, **m))
        for call in calls:
            with pytest.raises(ParameterError) as caught:
                call()
            message = str(caught.value)
            assert message.startswith(f"{name}: {key} must be "), message
            allowed = table(name)[key].allowed()
            if key == "loss":  # of the task only
                losses = RULES[estimator.rule].losses_for(estimator.task)
                allowed = f"one of {', '.join(map(repr, losses))}"
            assert allowed in message
            assert repr(value) in message
        assert not hasattr(estimator, "n_features_in_"), (key, value)


@pytest.mark.parametrize("name", ["TruncatedGradientClassifier", "FTRLRegressor"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("callback", 3),
        ("callback", "print"),
        ("random_state", "seed"),
        ("random_state", -1),
        ("random_state", 1.5),
        ("class_weight", "heavy"),
        ("class_weight", 3),
        ("class_weight", {"a": -1.0, "b": 1.0}),
        ("class_weight", {"a": math.nan, "b": 1.0}),
        ("class_weight", {"a": 1.0, "elm": 1.0}),
    ],
)
def test_bad_objects_are_refused(name: str, key: str, value: Any) -> None:
    if key not in table(name):
        with pytest.raises(TypeError, match=key):
            getattr(thresher, name)(**{key: value})
        return
    estimator = getattr(thresher, name)(**{key: value})
    with pytest.raises(ValueError, match=key):
        estimator.fit(X, LABELS if is_classifier(estimator) else Y)
    assert not hasattr(estimator, "n_features_in_")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_losses_of_the_other_task_are_refused(name: str) -> None:
    if "loss" not in table(name):
        pytest.skip("a rule with a single loss")
    task = "classifier" if name.endswith("Classifier") else "regressor"
    own = RULES[getattr(thresher, name).rule].losses_for(task)
    other = CLASSIFIER_LOSSES + REGRESSOR_LOSSES
    labels = LABELS if name.endswith("Classifier") else np.clip(np.abs(Y), 0, 1)
    gentle = {"alpha": 2.0} if "AveragedSGD" in name else {}
    gentle = {"eta0": 0.01} if "eta0" in table(name) else gentle
    for loss in set(other) - set(own):
        with pytest.raises(ParameterError) as caught:
            getattr(thresher, name)(loss=loss).fit(X, labels)
        assert repr(loss) in str(caught.value)
        assert all(allowed in str(caught.value) for allowed in own)
    if name == "AveragedSGDRegressor":  # its steps need a loss with a bounded slope
        with pytest.raises(ParameterError, match="poisson"):
            getattr(thresher, name)(loss="poisson").fit(X, labels)
        own = tuple(loss for loss in own if loss != "poisson")
    for loss in own:
        assert np.isfinite(getattr(thresher, name)(loss=loss, **gentle).fit(X, labels).coef_).all()


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (TruncatedGradientClassifier(shrink="round"), "round.*finite ceiling"),
        (TruncatedGradientRegressor(shrink="round"), "round.*finite ceiling"),
        (AveragedSGDClassifier(center=True, loss="clipped_square"), "center.*clipped_square"),
        (AveragedSGDRegressor(center=True, loss="clipped_square"), "center.*clipped_square"),
    ],
    ids=["round", "round-regressor", "center", "center-regressor"],
)
def test_contradicting_pairs_are_refused(estimator: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=f"{type(estimator).__name__}.*{words}"):
        estimator.fit(X, LABELS if is_classifier(estimator) else np.clip(np.abs(Y), 0, 1))


def test_partial_fit_refuses_parameters_that_need_all_rows() -> None:
    with pytest.raises(ParameterError, match=r"balanced.*dict"):
        TruncatedGradientClassifier(class_weight="balanced").partial_fit(
            X, LABELS, classes=["a", "b"]
        )
    for estimator in (AveragedSGDClassifier(center=True), AveragedSGDRegressor(center=True)):
        more = {"classes": ["a", "b"]} if is_classifier(estimator) else {}
        labels = LABELS if is_classifier(estimator) else Y
        with pytest.raises(ParameterError, match=r"center=True.*mean"):
            estimator.partial_fit(X, labels, **more)
        for mean in ([1.0, 2.0], [np.nan, 0, 0, 0], 1.0):
            with pytest.raises(ValueError, match="mean must be 4 finite numbers"):
                estimator.partial_fit(X, labels, mean=mean, **more)
        assert not hasattr(estimator, "n_features_in_")


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match="gravitas"):
        TruncatedGradientClassifier(gravitas=1.0)
    with pytest.raises(ValueError, match="gravitas"):
        TruncatedGradientClassifier().set_params(gravitas=1.0)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings(
    "error",
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:.*all weights are zero",
    "ignore::thresher.health.NoSignalWarning",
)
def test_the_bounds_of_the_allowed_ranges(name: str) -> None:
    """The smallest and the largest allowed value trains, or is reported as divergence."""
    for key, parameter in table(name).items():
        if parameter.kind not in ("number", "integer") or key == "passes":
            continue
        low = np.nextafter(parameter.low, math.inf) if parameter.open_low else parameter.low
        for value in (low, parameter.high):
            value = int(value) if parameter.kind == "integer" else float(value)
            seed = {"random_state": 0} if "random_state" in table(name) else {}
            estimator = getattr(thresher, name)(**seed, **{key: value})
            if key == "power":
                estimator.set_params(schedule="power")
            if "eta0" in table(name) and key != "eta0":
                estimator.set_params(eta0=0.01)
            if name == "StabilizedClassifier" and key in ("rejection", "paths", "bursts"):
                estimator.set_params(variant="paper", keep=0.0)
                estimator.set_params(**({"paths": 1} if key == "bursts" else {}))
            if name == "AveragedSGDRegressor" and key != "alpha":
                estimator.set_params(alpha=2.0)
            try:
                estimator.fit(X, LABELS if is_classifier(estimator) else Y)
            except (DivergenceError, DivergenceWarning):
                assert key in ("eta0", "alpha", "strength", "step"), (key, value)
                continue
            except ParameterError:
                assert (key, value) == ("n_nonzero", parameter.high)  # more than features
                continue
            assert np.isfinite(estimator.coef_).all(), (key, value)
            assert np.isfinite(estimator.intercept_).all(), (key, value)
            if not is_classifier(estimator):
                assert np.isfinite(estimator.predict(X)).all(), (key, value)


def test_parameters_may_be_numpy_scalars() -> None:
    plain = TruncatedGradientClassifier(
        eta0=0.5, gravity=0.25, period=3, passes=2, fit_intercept=False, random_state=1,
        shuffle=False, loss="hinge",
    ).fit(X, LABELS)  # fmt: skip
    other = TruncatedGradientClassifier(
        eta0=np.float32(0.5), gravity=np.float64(0.25), period=np.int8(3), passes=np.uint64(2),
        fit_intercept=np.bool_(False), random_state=np.int64(1), shuffle=np.bool_(False),
        loss=np.str_("hinge"),
    ).fit(X, LABELS)  # fmt: skip
    np.testing.assert_array_equal(plain.coef_, other.coef_)
