"""Early stopping by a metric of the validation rows."""

import json

import numpy as np
import pytest

import thresher
from support.files import called, svmlight
from thresher import FTRLClassifier, Observer, TruncatedGradientClassifier
from thresher.errors import DataError, ModelFileError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 8))
NOISY = X[:, 0] - X[:, 1] + RNG.normal(size=600)
Y = (NOISY > 0).astype(int)
CLASSES = np.digitize(NOISY, [-0.7, 0.7])


class Passes(Observer):
    """Keeps what is told after each pass."""

    def __init__(self):
        self.told = []

    def tell(self, event, **facts):
        if event == "pass":
            self.told.append(facts)


def told(estimator, y, metric, valid=None):
    watching = Passes()
    made = estimator.fit(
        X[:400], y[:400], eval_set=valid or (X[400:], y[400:]), metric=metric, observer=watching
    )
    assert {facts["metric"] for facts in watching.told} == {metric}
    return made, [facts["value"] for facts in watching.told]


@pytest.mark.parametrize(
    ("y", "metric"),
    [(Y, "roc_auc"), (Y, "log_loss"), (Y, "lift_at_0.2"), (CLASSES, "f1_macro"),
     (CLASSES, "roc_auc")],
)  # fmt: skip
def test_the_metric_is_that_of_the_model(y, metric):
    for loss in ("logistic", "clipped_square"):
        made, values = told(FTRLClassifier(loss=loss, passes=3, random_state=0), y, metric)
        wanted = thresher.evaluate(made, X[400:], y[400:], replicates=0, shares=(0.2,))
        assert values[-1] == pytest.approx(wanted[metric], rel=1e-6)
        assert len(values) == 3


def test_sets_of_labels_and_numbers():
    sets = np.column_stack([Y, CLASSES == 1, CLASSES == 2]).astype(int)
    made, values = told(FTRLClassifier(passes=2, random_state=0), sets, "precision_at_2")
    found = thresher.evaluate(made, X[400:], sets[400:], replicates=0, at=(2,))
    assert values[-1] == pytest.approx(found["precision_at_2"])
    for epsilon in (0.1, "auto"):
        regressor = thresher.TruncatedGradientRegressor(
            loss="epsilon_insensitive", epsilon=epsilon, random_state=0, passes=3
        )
        made, values = told(regressor, NOISY * 1000, "rmse")
        wanted = thresher.evaluate(made, X[400:], NOISY[400:] * 1000, replicates=0)["rmse"]
        assert values[-1] == pytest.approx(wanted, rel=1e-5)


def test_the_best_pass_by_the_metric_is_kept():
    def made():
        return TruncatedGradientClassifier(
            eta0=3.0, passes=30, tol=0.0, patience=4, shuffle=False, random_state=0
        )

    fitted, values = told(made(), Y, "roc_auc")
    best = int(np.argmax(values))
    assert len(values) == min(30, best + 5)
    assert best + 1 < len(values)
    found = thresher.evaluate(fitted, X[400:], Y[400:], replicates=0)
    assert found["roc_auc"] == pytest.approx(max(values))


def test_training_itself_does_not_change():
    pair = (X[400:], Y[400:])
    plain = FTRLClassifier(passes=3, random_state=0).fit(X[:400], Y[:400], eval_set=pair)
    judged = FTRLClassifier(passes=3, random_state=0)
    judged.fit(X[:400], Y[:400], eval_set=pair, metric="auc")
    assert judged.model_.weights.tobytes() == plain.model_.weights.tobytes()
    losses = [[r.valid_loss for r in one.model_.history] for one in (plain, judged)]
    assert losses[0] == losses[1]


def test_refusals():
    clf, pair = FTRLClassifier(passes=2), (X, Y)
    with pytest.raises(ParameterError, match=r"metric='roc_auc' needs rows .* eval_set"):
        clf.fit(X, Y, metric="roc_auc")
    with pytest.raises(ParameterError, match=r"metric must be one of accuracy, .*; got 'rmse'"):
        clf.fit(X, Y, eval_set=pair, metric="rmse")
    with pytest.raises(ParameterError, match="lift_at_S; got 'lift_at_3'"):
        clf.fit(X, Y, eval_set=pair, metric="lift_at_3")
    with pytest.raises(ParameterError, match="metric must be the name of a metric; got 3"):
        clf.fit(X, Y, eval_set=pair, metric=3)
    with pytest.raises(DataError, match="no ROC AUC of the validation rows: no row has the label"):
        clf.fit(X, Y, eval_set=(X[Y == 1], Y[Y == 1]), metric="auc")
    with pytest.raises(ParameterError, match="rules that learn row by row"):
        thresher.CoordinateDescentClassifier().fit(X, Y, eval_set=pair, metric="auc")


@pytest.mark.parametrize("more", [(), ("--multiclass",), ("--scale", "variance")])
def test_the_command(tmp_path, more):
    classes = (1, 2, 5) if "--multiclass" in more else (-1, 1)
    train = svmlight(tmp_path / "train.svm", classes=classes)
    valid = svmlight(tmp_path / "valid.svm", seed=1, classes=classes)
    words = ("train", train, "--valid", valid, "--metric", "auc", "--passes", 4, *more)
    words = (*words, "--rule", "ftrl", "--json", "-m", tmp_path / "m")
    events = [json.loads(line) for line in called(*words).stdout.splitlines()]
    values = [one["value"] for one in events if one["event"] == "pass"]
    found = json.loads(called("evaluate", tmp_path / "m", valid, "--json").stdout)
    assert max(values) == pytest.approx(found["roc_auc"], abs=1e-6)
    text = called(*words[:-3], "-m", tmp_path / "n").stderr
    assert "pass 1: roc_auc of the validation rows 0." in text
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()


def test_a_resumed_run_needs_the_same_metric(tmp_path):
    class Stop(Passes):
        def stops(self):
            return len(self.told) >= 2

    def run(metric, observer, resume):
        clf = FTRLClassifier(passes=4, tol=0.0, random_state=0)
        pair = (X[400:], Y[400:])
        return clf.fit(X[:400], Y[:400], eval_set=pair, metric=metric, observer=observer,
                       checkpoint=tmp_path / "c", resume=resume)  # fmt: skip

    with pytest.raises(thresher.Interrupted):
        run("roc_auc", Stop(), False)
    with pytest.raises(ModelFileError, match=r"metric was 'roc_auc' .* 'log_loss' now"):
        run("log_loss", Passes(), True)
    with pytest.raises(ModelFileError, match="metric was 'roc_auc'"):
        run(None, Passes(), True)
    resumed = run("auc", Passes(), True)
    whole = FTRLClassifier(passes=4, tol=0.0, random_state=0)
    whole.fit(X[:400], Y[:400], eval_set=(X[400:], Y[400:]), metric="auc")
    assert resumed.model_.weights.tobytes() == whole.model_.weights.tobytes()
