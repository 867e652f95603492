"""Bad values, shapes and labels raise errors that name them, and do not change the estimator."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from thresher import (
    AveragedSGDClassifier,
    AveragedSGDRegressor,
    DataError,
    DivergenceError,
    ForwardBackwardClassifier,
    ForwardBackwardRegressor,
    FTRLClassifier,
    FTRLRegressor,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)

ESTIMATORS = [
    TruncatedGradientClassifier(eta0=0.1, gravity=1e-3, random_state=0),
    TruncatedGradientClassifier(eta0=0.1, gravity=1e-3, random_state=0, average=True),
    TruncatedGradientRegressor(eta0=0.01, gravity=1e-3, random_state=0),
    AveragedSGDClassifier(alpha=0.05, random_state=0),
    AveragedSGDRegressor(alpha=1.0, loss="huber", random_state=0),
    ForwardBackwardClassifier(eta0=0.1, l1=1e-3, random_state=0),
    ForwardBackwardRegressor(eta0=0.01, l1=1e-3, random_state=0),
    FTRLClassifier(alpha=0.1, l1=0.1, random_state=0),
    FTRLRegressor(alpha=0.1, l1=0.1, random_state=0),
]
RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 6))
Y = X[:, 0] - X[:, 2]
LABELS = np.where(Y > 0, 1, 0)
THREE = np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 0.5])]

every_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=[f"{type(e).__name__}-{i}" for i, e in enumerate(ESTIMATORS)]
)
both_kinds = pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])


def target(estimator: Any) -> np.ndarray:
    return LABELS if is_classifier(estimator) else Y


def state(estimator: Any) -> tuple[Any, ...]:
    """Return all that a failed call must not change; predictions come from the learners."""
    scores = getattr(estimator, "decision_function", estimator.predict)(X)
    history = [record._replace(seconds=0.0) for record in estimator.history_]
    kept = (estimator.n_features_in_, estimator.n_iter_)
    return (scores.tolist(), history, *kept, str(getattr(estimator, "classes_", None)))


def assert_unfitted(estimator: Any) -> None:
    with pytest.raises(NotFittedError):
        estimator.predict(X)
    left = [name for name in vars(estimator) if name.endswith("_") and not name.endswith("__")]
    assert left == []


# ---- values -----------------------------------------------------------------------------------


@every_estimator
@both_kinds
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 17, 59])
def test_values_must_be_finite(estimator: Any, kind: Any, value: float, row: int) -> None:
    """The error names the row and the feature, and the estimator stays as it was."""
    bad = X.copy()
    bad[row, 4] = value
    estimator, y = clone(estimator), target(estimator)
    where = rf"row {row}\b.*feature 4\b.*finite"
    with pytest.raises(DataError, match=where):
        estimator.fit(kind(bad), y)
    assert_unfitted(estimator)
    more = {"classes": [0, 1]} if is_classifier(estimator) else {}
    with pytest.raises(DataError, match=where):
        clone(estimator).partial_fit(kind(bad), y, **more)
    estimator.fit(kind(X), y)
    before = state(estimator)
    with pytest.raises(DataError, match=where):
        estimator.fit(kind(bad), y)
    with pytest.raises(DataError, match=where):
        estimator.predict(kind(bad))
    with pytest.raises(DataError, match=where):
        estimator.fit(kind(X), y, eval_set=(kind(bad), y))
    assert state(estimator) == before


@every_estimator
@both_kinds
def test_values_must_be_finite_where_no_step_is_made(estimator: Any, kind: Any) -> None:
    """A bad row is found although it is the first and its weight is 0."""
    bad = X.copy()
    bad[0, 4] = np.nan
    more = {"classes": [0, 1]} if is_classifier(estimator) else {}
    weight = np.r_[0.0, np.ones(59)]
    with pytest.raises(DataError, match=r"row 0\b.*feature 4\b"):
        clone(estimator).partial_fit(kind(bad), target(estimator), sample_weight=weight, **more)


@every_estimator
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_labels_must_be_finite(estimator: Any, value: float) -> None:
    y = target(estimator).astype(float)
    y[7] = value
    estimator = clone(estimator)
    with pytest.raises(ValueError, match=r"(?i)nan|infinity|unknown label"):
        estimator.fit(X, y)
    assert_unfitted(estimator)


@every_estimator
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_weights_must_be_finite_and_not_negative(estimator: Any, value: float) -> None:
    weight = np.ones(60)
    weight[7] = value
    estimator = clone(estimator)
    more = {"classes": [0, 1]} if is_classifier(estimator) else {}
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        estimator.fit(X, target(estimator), sample_weight=weight)
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        estimator.partial_fit(X, target(estimator), sample_weight=weight, **more)
    assert_unfitted(estimator)


@every_estimator
@pytest.mark.parametrize("value", [1e18, 1e30, 1e38, 1e200, 1e-300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore::thresher.health.DivergenceWarning")
def test_extreme_values_never_make_weights_that_are_not_finite(
    estimator: Any, value: float, dtype: str
) -> None:
    for bad, y in ((X * np.where(np.arange(60) == 9, value, 1)[:, None], target(estimator)),
                   (X * value, target(estimator))):  # fmt: skip
        model = clone(estimator).set_params(dtype=dtype)
        try:
            model.fit(bad, y)
        except (DataError, DivergenceError) as error:
            assert "row " in str(error)  # noqa: PT017
            assert_unfitted(model)
        else:
            assert np.isfinite(model.coef_).all()
            assert np.isfinite(model.intercept_).all()


# ---- shapes and labels ------------------------------------------------------------------------


@every_estimator
def test_shapes(estimator: Any) -> None:
    estimator, y = clone(estimator), target(estimator)
    for rows, labels, words in (
        (X[0], y[:1], "2D array"),
        (X[None], y[:1], "dim|2D"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X[:0], y[:0], "0 sample"),
        (X[:, :0], y, "0 feature"),
        (sp.csr_matrix((0, 6)), y[:0], "0 sample"),
        (sp.csr_matrix((60, 0)), y, "0 feature"),
        (X, np.column_stack([y, y + 2]), "1d|1-d|multi|Multi|shape|0 and 1"),
        (X, None, "y"),
        (X, y[:0], "inconsistent|0 sample"),
    ):
        with pytest.raises(ValueError, match=words):
            estimator.fit(rows, labels)
        assert_unfitted(estimator)
    with pytest.raises(ValueError, match="sample_weight"):
        estimator.fit(X, y, sample_weight=np.ones(59))
    with pytest.raises(ValueError, match="eval_set"):
        estimator.fit(X, y, eval_set=X)
    with pytest.raises(ValueError, match="features"):
        estimator.fit(X, y, eval_set=(X[:, :3], y))
    assert_unfitted(estimator)
    estimator.fit(X, y)
    before = state(estimator)
    for other in (X[:, :5], np.column_stack([X, X])):
        with pytest.raises(ValueError, match="features"):
            estimator.predict(other)
        with pytest.raises(ValueError, match="features"):
            estimator.partial_fit(other, y)
    assert state(estimator) == before


@both_kinds
@pytest.mark.parametrize("columns", [5, 7])
def test_models_refuse_rows_of_another_width(kind: Any, columns: int) -> None:
    model = TruncatedGradientClassifier(eta0=0.1).fit(X, LABELS).model_
    with pytest.raises(ValueError, match="6"):
        model.predict(kind(np.ones((3, columns))))


def test_models_need_matrices() -> None:
    model = TruncatedGradientClassifier(eta0=0.1).fit(X, LABELS).model_
    with pytest.raises(ValueError, match=r"shape|dimension|2"):
        model.predict(X[0])
    np.testing.assert_array_equal(model.predict(X.tolist()), model.predict(X))
    np.testing.assert_array_equal(model.predict(sp.coo_matrix(X)), model.predict(X))


CLASSIFIERS = [e for e in ESTIMATORS if is_classifier(e)]
every_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=range(len(CLASSIFIERS)))


@every_classifier
def test_labels_of_classifiers(estimator: Any) -> None:
    estimator = clone(estimator)
    with pytest.raises(ValueError, match=r"2 classes.*one class"):
        estimator.fit(X, np.ones(60))
    with pytest.raises(ValueError, match="label"):
        estimator.fit(X, Y)
    with pytest.raises(ValueError, match="classes must be given"):
        estimator.partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="at least 2"):
        estimator.partial_fit(X, LABELS, classes=[1])
    with pytest.raises(ValueError, match=r"label .*1.*not among"):
        estimator.partial_fit(X, LABELS, classes=[0, 2])
    assert_unfitted(estimator)
    estimator.partial_fit(X, THREE, classes=["a", "b", "c"])
    before = state(estimator)
    with pytest.raises(ValueError, match="labels are partly numbers and partly words"):
        estimator.partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="classes"):
        estimator.partial_fit(X, THREE, classes=["a", "b"])
    assert state(estimator) == before
    estimator = clone(estimator).partial_fit(X, LABELS, classes=[0, 1])
    before = state(estimator)
    with pytest.raises(ValueError, match="label 2 is not among the classes 0, 1"):
        estimator.partial_fit(X, LABELS + 1)
    assert state(estimator) == before


@pytest.mark.parametrize("cls", [TruncatedGradientRegressor, FTRLRegressor])
@pytest.mark.parametrize(
    ("loss", "y", "words"),
    [
        ("poisson", np.abs(Y) - 0.5, "poisson.*>= 0"),
        ("clipped_square", Y, r"clipped_square needs 0\.\.1"),
        ("squared", np.array(["a", "b"])[LABELS], "string|numeric|convert"),
    ],
)
def test_labels_of_regressors(cls: Any, loss: str, y: np.ndarray, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cls(loss=loss).fit(X, y)
    with pytest.raises(ValueError, match=words):
        cls(loss=loss).partial_fit(X, y)


# ---- divergence -------------------------------------------------------------------------------

LOUD = np.arange(60) >= 40  # the last rows
DIVERGING = [
    (TruncatedGradientRegressor(eta0=1e6, gravity=1e-4, random_state=0), X, {}),
    (TruncatedGradientRegressor(eta0=1e6, shuffle=False), X * (1.0 + 99.0 * LOUD[:, None]), {}),
    (TruncatedGradientRegressor(eta0=1e6, random_state=0), X * 0.1, {}),  # the intercept diverges
    (TruncatedGradientRegressor(eta0=1e6, random_state=0, fit_intercept=False), X * 0.1, {}),
    (TruncatedGradientRegressor(eta0=1e4), X, {"sample_weight": np.full(60, 20.0)}),
    (TruncatedGradientRegressor(eta0=1e6, dtype="float64", loss="square"), X, {}),
    (TruncatedGradientRegressor(eta0=1e6, schedule="sqrt", store="hashed"), sp.csr_matrix(X), {}),
    (ForwardBackwardRegressor(eta0=1e6, random_state=0), X, {}),
    (TruncatedGradientClassifier(eta0=1e12, loss="squared_hinge"), X, {}),
    (AveragedSGDRegressor(alpha=1e-20, loss="squared"), X, {}),
    (FTRLRegressor(alpha=1e20, l1=0.1), X, {}),
]


@pytest.mark.parametrize(
    ("estimator", "rows", "more"), DIVERGING, ids=[f"case{i}" for i in range(len(DIVERGING))]
)
def test_divergence_is_reported_with_a_rate_that_is_safe(
    estimator: Any, rows: Any, more: dict[str, Any]
) -> None:
    estimator, y = clone(estimator), target(estimator)
    with pytest.raises(DivergenceError) as caught:
        estimator.fit(rows, y, **more)
    message = str(caught.value)
    assert_unfitted(estimator)
    found = re.search(
        r"step (\d+), row (\d+): (lower|raise) (eta0|alpha); .* (\S+) is safe", message
    )
    assert found, message
    assert 1 <= int(found[1]) <= 60 * 5
    assert 0 <= int(found[2]) < 60
    safe = {found[4]: float(found[5])}
    assert 0 < float(found[5]) < np.inf
    calm = estimator.set_params(**safe).fit(rows, y, **more)
    assert np.abs(calm.coef_).max() < 1e6
    before = state(calm)
    calm.set_params(**{found[4]: 1e6 if found[3] == "lower" else 1e-20})
    if found[4] == "eta0":  # a fitted estimator keeps its model
        with pytest.raises(DivergenceError):
            calm.fit(rows, y, **more)
    assert state(calm) == before


# ---- failing and interrupted fits -------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("warm_start", [False, True])
def test_failing_fit_leaves_a_fitted_estimator_as_it_was(estimator: Any, warm_start: bool) -> None:
    bad, y = X.copy(), target(estimator)
    bad[33, 1] = np.nan
    estimator = clone(estimator).set_params(warm_start=warm_start)
    if hasattr(estimator, "decay"):
        estimator.set_params(decay=0.5)
    estimator.fit(X, y)
    before = state(estimator)
    with pytest.raises(DataError):
        estimator.fit(bad, y)
    with pytest.raises(ValueError, match="inconsistent"):
        estimator.fit(X, y[:-1])
    assert state(estimator) == before
    twin = clone(estimator).fit(X, y)
    assert state(estimator.fit(X, y)) == state(twin.fit(X, y))


@every_classifier
def test_failing_partial_fit_keeps_the_outputs_together(estimator: Any) -> None:
    """Either all outputs learn the rows before the bad one, or none does."""
    bad = X.copy()
    bad[33, 1] = np.nan
    model = clone(estimator).partial_fit(X, THREE, classes=["a", "b", "c"])
    with pytest.raises(DataError, match="row 33"):
        model.partial_fit(bad, THREE)
    none, some = (clone(estimator).partial_fit(X, THREE, classes=["a", "b", "c"]) for _ in "ab")
    some.partial_fit(bad[:33], THREE[:33])
    found = model.decision_function(X).tolist()
    assert found in (none.decision_function(X).tolist(), some.decision_function(X).tolist())


INTERRUPTED = """
import signal, sys
import numpy as np
from thresher import {name}

signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.random.default_rng(0).normal(size=(2000, 30))
y = (X[:, :1] > np.array([{cuts}])).sum(axis=1)
model = {name}(passes=1, warm_start={warm_start}, shuffle=False)
new = type(model)(passes=10**9)
before = model.fit(X, y).decision_function(X)
for estimator in (model.set_params(passes=10**9), new):
    try:
        print("ready", flush=True)
        estimator.fit(X, y)
        print("finished", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
assert (model.decision_function(X) == before).all(), "the model has changed"
assert not hasattr(new, "model_") and not hasattr(new, "classes_")
print("intact", flush=True)
"""


@pytest.mark.parametrize(
    ("name", "cuts", "warm_start"),
    [
        ("TruncatedGradientClassifier", "0.0", True),
        pytest.param("FTRLClassifier", "-0.5, 0.5", False, marks=pytest.mark.soak),
    ],
)
def test_ctrl_c_in_the_middle_of_fit(name: str, cuts: str, warm_start: bool) -> None:
    """It ends fit immediately, and does not change the estimator."""
    code = INTERRUPTED.format(name=name, cuts=cuts, warm_start=warm_start)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        watchdog = threading.Timer(60, process.kill)  # a fit that cannot be interrupted
        watchdog.start()
        try:
            for _ in range(2):
                assert process.stdout.readline() == "ready\n"
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.3)  # fit is running
                process.send_signal(signal.SIGINT)
                assert process.stdout.readline() == "interrupted\n"
            assert process.stdout.read() == "intact\n"
        finally:
            watchdog.cancel()
            process.kill()
