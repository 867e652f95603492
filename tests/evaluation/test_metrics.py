"""Metrics are those of scikit-learn: with ties, with weights, and with classes without rows."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.calibration import calibration_curve

import thresher
from support.score_models import identity_model
from thresher.losses import PROBABILITY_LOSSES

SEEDS = st.integers(0, 2**20)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")


def drawn(seed, columns, ties):
    """Return scores, some of them equal, and weights, some of them 0; or no weights."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 60))
    X = rng.integers(-3, 4, (rows, columns)) / 2 if ties else rng.normal(size=(rows, columns))
    weights = rng.integers(0, 4, rows) * 0.75 + (rng.random(rows) < 0.5)
    if not weights.any():
        weights[0] = 1.0
    return rng, X.astype(float), (weights if seed % 2 else None)


def same(found, wanted):
    """Tell whether a metric is equal up to rounding; None: undefined."""
    for name, value in wanted.items():
        if value is None:
            assert found[name] is None, (name, found[name])
            assert found.metrics[name].reason
        else:
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    json.loads(found.to_json())


@given(SEEDS, st.booleans(), st.sampled_from(["logistic", "hinge", "modified_huber"]))
def test_two_classes(seed, ties, loss):
    rng, X, w = drawn(seed, 1, ties)
    y = (rng.random(len(X)) < rng.choice([0.0, 0.3, 0.6, 1.0])).astype(int)
    model = identity_model(1, [0, 1], loss)
    found = thresher.evaluate(model, X, y, w, replicates=0)
    predicted, score = model.predict(X), X[:, 0]
    total = np.ones(len(y)) if w is None else w
    own, other, named = (float(total[part].sum()) for part in (y == 1, y == 0, predicted == 1))
    both, args = own > 0 and other > 0, {"sample_weight": w}
    binary = {"sample_weight": w, "zero_division": 0}
    wanted = {
        "accuracy": metrics.accuracy_score(y, predicted, **args),
        "roc_auc": metrics.roc_auc_score(y, score, **args) if both else None,
        "average_precision": metrics.average_precision_score(y, score, **args) if own else None,
        "precision": metrics.precision_score(y, predicted, **binary) if named else None,
        "recall": metrics.recall_score(y, predicted, **binary) if own else None,
        "f1": metrics.f1_score(y, predicted, **binary) if own or named else None,
        "log_loss": None,
        "brier_score": None,
        "ece": None,
    }
    if loss in PROBABILITY_LOSSES:
        p = model.predict_proba(X)
        wanted["log_loss"] = metrics.log_loss(y, p, labels=[0, 1], **args)
        wanted["brier_score"] = metrics.brier_score_loss(y, p[:, 1], pos_label=1, **args)
        bins = np.searchsorted(np.linspace(0, 1, 11)[1:-1], p[:, 1])
        gaps = [abs((total * (y - p[:, 1]))[bins == b].sum()) for b in range(10)]
        wanted["ece"] = sum(gaps) / total.sum()
    else:
        assert "hinge" in found.metrics["log_loss"].reason
    if both:
        wanted["balanced_accuracy"] = metrics.balanced_accuracy_score(y, predicted, **args)
    same(found, wanted)
    matrix = metrics.confusion_matrix(y, predicted, labels=[0, 1], **args)
    np.testing.assert_allclose(found.tables["confusion_matrix"]["rows"], matrix)


@given(SEEDS, st.booleans(), st.sampled_from(["logistic", "squared_hinge"]))
def test_several_classes(seed, ties, loss):
    rng, X, w = drawn(seed, 4, ties)
    y = rng.choice(["a", "b", "c", "d"][: rng.integers(1, 5)], len(X))
    classes = ["a", "b", "c", "d"]
    model = identity_model(4, classes, loss)
    found = thresher.evaluate(model, X, y, w, replicates=0)
    predicted = model.predict(X)
    total = np.ones(len(y)) if w is None else w
    seen = [k for k, label in enumerate(classes) if total[y == label].any()]
    rated = loss in PROBABILITY_LOSSES
    scores = model.predict_proba(X) if rated else X
    heavy = total > 0
    args, each = {"sample_weight": w}, []
    for k in seen:
        mine = y == classes[k]
        if total[~mine].any():
            each.append(metrics.roc_auc_score(mine, scores[:, k], **args))
    precision = [
        metrics.average_precision_score(y == classes[k], scores[:, k], **args) for k in seen
    ]
    wanted = {
        "accuracy": metrics.accuracy_score(y, predicted, **args),
        "balanced_accuracy": metrics.recall_score(
            y[heavy], predicted[heavy], average="macro", labels=[classes[k] for k in seen],
            sample_weight=total[heavy], zero_division=0,
        ),
        "f1_macro": metrics.f1_score(
            y[heavy], predicted[heavy], average="macro", sample_weight=total[heavy],
            zero_division=np.nan,
        ),
        "f1_weighted": metrics.f1_score(
            y, predicted, average="weighted", zero_division=0, **args
        ),
        "roc_auc": np.mean(each) if each else None,
        "average_precision": np.mean(precision),
    }  # fmt: skip
    if rated:
        wanted["log_loss"] = metrics.log_loss(y, scores, labels=classes, **args)
        onehot = np.array([[label == one for one in classes] for label in y], float)
        squares = ((scores - onehot) ** 2).sum(axis=1)
        wanted["brier_score"] = np.average(squares, weights=total)
    same(found, wanted)
    for line, label in zip(found.tables["per_class"], classes, strict=True):
        mine, named = total[y == label].sum(), total[predicted == label].sum()
        recall = metrics.recall_score(y == label, predicted == label, zero_division=0, **args)
        assert line["recall"] == (pytest.approx(recall) if mine else None)
        assert (line["precision"] is None) == (named == 0)


@given(SEEDS, st.sampled_from(["squared", "absolute", "poisson"]), st.floats(0.05, 0.95))
def test_numbers(seed, loss, quantile):
    rng, X, w = drawn(seed, 1, True)
    y = np.abs(rng.normal(1e6 * (seed % 3 == 0), 1.0, len(X)))
    model = identity_model(1, None, loss)
    found = thresher.evaluate(model, X, y, w, replicates=0, quantile=quantile)
    predicted, args = model.predict(X), {"sample_weight": w}
    total = np.ones(len(y)) if w is None else w
    wanted = {
        "r2": metrics.r2_score(y, predicted, **args) if (total > 0).sum() > 1 else None,
        "rmse": metrics.root_mean_squared_error(y, predicted, **args),
        "mae": metrics.mean_absolute_error(y, predicted, **args),
        "quantile_loss": metrics.mean_pinball_loss(y, predicted, alpha=quantile, **args),
    }
    same(found, wanted)
    constant = thresher.evaluate(model, X, np.full(len(X), 0.1), w, replicates=0)
    assert constant.metrics["r2"].reason == "all labels are equal"


@given(SEEDS, st.booleans())
def test_any_number_of_labels(seed, ties):
    rng, X, w = drawn(seed, 5, ties)
    Y = (rng.random(X.shape) < 0.35).astype(int)
    model = identity_model(5, [3, 5, 8, 13, 21], "logistic", multilabel=True)
    found = thresher.evaluate(model, X, Y, w, replicates=0, at=(1, 2, 7))
    F, args = (X >= 0).astype(int), {"sample_weight": w}
    total = np.ones(len(Y)) if w is None else w
    some = (total @ Y).any()
    rows = (Y.sum(axis=1) > 0) & (total > 0)
    heavy = total > 0
    wanted = {
        "accuracy": metrics.accuracy_score(Y, F, **args),
        "hamming_loss": metrics.hamming_loss(Y, F, **args),
        "f1_macro": metrics.f1_score(
            Y[heavy], F[heavy], average="macro", zero_division=np.nan, sample_weight=total[heavy]
        ),
        "recall_micro": metrics.recall_score(Y, F, average="micro", **args) if some else None,
    }
    if some or (total @ F).any():
        wanted["f1_micro"] = metrics.f1_score(Y, F, average="micro", **args)
    for k in (1, 2):
        if rows.any():
            own = {"k": k, "sample_weight": total[rows]}
            wanted[f"ndcg_at_{k}"] = metrics.ndcg_score(Y[rows], X[rows], **own)
        wanted[f"precision_at_{k}"] = np.average(
            [expected_hits(x, y, k) / k for x, y in zip(X, Y, strict=True)], weights=total
        )
    same(found, wanted)


def expected_hits(scores, true, k):
    """Return how many true labels are in the first k places, labels of one score at random."""
    left, hits = k, 0.0
    for score in np.unique(scores)[::-1]:
        tied = true[scores == score]
        taken = min(left, len(tied))
        hits += taken * tied.mean()
        left -= taken
    return hits


@given(SEEDS, st.booleans())
def test_lift(seed, ties):
    rng, X, w = drawn(seed, 1, ties)
    y = (rng.random(len(X)) < 0.4).astype(int)
    y[0], y[-1] = 1, 0
    total = np.ones(len(y)) if w is None else w + 0.5
    found = thresher.evaluate(
        identity_model(1, [0, 1]), X, y, total, replicates=0, shares=(0.1, 0.5, 1)
    )
    assert found["lift_at_1"] == pytest.approx(1.0)
    for share in (0.1, 0.5):
        left, hits = share * total.sum(), 0.0
        for score in np.unique(X)[::-1]:
            own = X[:, 0] == score
            part = min(1.0, left / total[own].sum())
            hits += part * total[own & (y == 1)].sum()
            left -= part * total[own].sum()
        wanted = hits / (share * total[y == 1].sum())
        assert found[f"lift_at_{share:g}"] == pytest.approx(wanted)


def test_curves_and_thresholds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 1)).round(1)
    y = (X[:, 0] + rng.normal(size=500) > 0).astype(int)
    model = identity_model(1, [0, 1])
    tables = thresher.evaluate(model, X, y, replicates=0).tables
    wrong, right, _ = metrics.roc_curve(y, X[:, 0], drop_intermediate=False)
    assert set(tables["roc_curve"]) <= set(zip(wrong.tolist(), right.tolist(), strict=True))
    assert tables["roc_curve"][0] == (0, 0)
    assert tables["roc_curve"][-1] == (1, 1)
    precision, recall, _ = metrics.precision_recall_curve(y, X[:, 0])
    points = set(zip(recall.round(12).tolist(), precision.round(12).tolist(), strict=True))
    for a, b in tables["precision_recall_curve"]:
        assert (round(a, 12), round(b, 12)) in points
    for line in tables["thresholds"]:
        predicted = model.predict_proba(X)[:, 1] >= line["threshold"]
        assert line["share"] == pytest.approx(predicted.mean())
        assert line["f1"] == pytest.approx(metrics.f1_score(y, predicted))
    bins = tables["calibration"]
    assert sum(one["weight"] for one in bins) == 500
    shares, means = calibration_curve(y, model.predict_proba(X)[:, 1], n_bins=10)
    np.testing.assert_allclose([one["observed"] for one in bins], shares)
    np.testing.assert_allclose([one["predicted"] for one in bins], means)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "clipped_square"])
def test_the_loss_is_that_of_training(loss):
    """Of two classes and of several; the loss of validation rows is another way to compute it."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(200, 6)))
    for y in ((X[:, 0] > 1).astype(int), (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 1)):
        made = thresher.TruncatedGradientClassifier(loss=loss, random_state=0, passes=2)
        made.fit(X, y, eval_set=(X, y))
        found = thresher.evaluate(made, X, y, replicates=0)
        assert found["loss"] == pytest.approx(made.model_.history[-1].valid_loss, rel=1e-5)


def test_a_loss_whose_epsilon_is_unknown_has_no_value():
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50.0)
    for epsilon, known in (("auto", False), (0.3, True)):
        made = thresher.TruncatedGradientRegressor(loss="huber", epsilon=epsilon).fit(X, y)
        found = thresher.evaluate(made, X, y, replicates=0)
        assert (found["loss"] is not None) == known
        assert ("epsilon" in found.metrics["loss"].reason) != known
