"""Names of losses as scikit-learn spells them, and the choices that an error lists."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV

import thresher
from support.files import called, svmlight
from thresher import _core
from thresher.errors import ParameterError
from thresher.losses import OTHER_LOSSES, SELECTABLE_LOSSES, SKLEARN_NAMES, canonical_loss
from thresher.rules import RULES
from thresher.training.observer import Interrupted, Observer

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 6))
SIGNS = (X[:, 0] - X[:, 1] > 0).astype(int)
VALUES = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=200)


def same(a, b):
    return a.weights.tobytes() == b.weights.tobytes() and a.loss == b.loss


# ---- meanings ------------------------------------------------------------------------------------

OF_SKLEARN = {
    "log_loss": lambda p, y: np.log1p(np.exp(-p * y)),
    "hinge": lambda p, y: np.maximum(0, 1 - p * y),
    "squared_hinge": lambda p, y: np.maximum(0, 1 - p * y) ** 2,
    "modified_huber": lambda p, y: np.where(p * y >= -1, np.maximum(0, 1 - p * y) ** 2, -4 * p * y),
    "squared_error": lambda p, y: 0.5 * (p - y) ** 2,
    "absolute_error": lambda p, y: np.abs(p - y),
    "huber": lambda p, y: np.where(
        np.abs(p - y) <= 0.3, 0.5 * (p - y) ** 2, 0.3 * np.abs(p - y) - 0.5 * 0.3**2
    ),
    "epsilon_insensitive": lambda p, y: np.maximum(0, np.abs(p - y) - 0.3),
    "quantile": lambda p, y: np.maximum(0.8 * (y - p), -0.2 * (y - p)),
}


@pytest.mark.parametrize("name", OF_SKLEARN)
def test_a_name_means_the_same_as_in_scikit_learn(name):
    p = np.linspace(-3, 3, 41)
    y = np.where(np.arange(41) % 2, 1.0, -1.0)
    ours = _core.loss_values(canonical_loss(name), 0.3, 0.8, p, y)[0]
    np.testing.assert_allclose(ours, OF_SKLEARN[name](p, y), atol=1e-12)


def test_every_loss_of_sgd_is_a_name_here_or_is_explained():
    losses = set()
    for made in (SGDClassifier, SGDRegressor):
        choices = made._parameter_constraints["loss"][0].options
        losses |= set(choices)
    known = set(SELECTABLE_LOSSES) | set(SKLEARN_NAMES) | set(OTHER_LOSSES)
    assert losses <= known
    assert {"log_loss", "squared_error"} <= losses


# ---- estimators ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [rule for rule in RULES if len(RULES[rule].losses) > 1])
@pytest.mark.parametrize("task", ["classifier", "regressor"])
def test_every_estimator_takes_the_name(rule, task):
    from thresher.estimators import estimator_class

    ours, theirs = (
        ("logistic", "log_loss") if task == "classifier" else ("squared", "squared_error")
    )
    if ours not in RULES[rule].losses or task not in RULES[rule].tasks:
        pytest.skip("the rule has another loss")
    made, y = estimator_class(rule, task), SIGNS if task == "classifier" else VALUES
    plain = made(loss=ours, random_state=0).fit(X, y)
    named = made(loss=theirs, random_state=0)
    assert clone(named).get_params()["loss"] == theirs
    named.fit(X, y)
    assert named.get_params()["loss"] == theirs == clone(named).loss
    assert same(named.model_, plain.model_)
    assert named.model_.loss == ours == named.model_.parameters.get("loss", ours)
    assert named.score(X, y) == plain.score(X, y)
    if task == "classifier" and hasattr(plain, "predict_proba"):
        np.testing.assert_array_equal(named.predict_proba(X), plain.predict_proba(X))
    if hasattr(named, "partial_fit"):
        fresh, other = made(loss=theirs, random_state=0), made(loss=ours, random_state=0)
        more = {"classes": [0, 1]} if task == "classifier" else {}
        for _ in range(2):
            fresh.partial_fit(X, y, **more)
            other.partial_fit(X, y, **more)
        assert same(fresh.model_, other.model_)


def test_model_files_have_our_name(tmp_path):
    clf = thresher.FTRLClassifier(loss="log_loss").fit(X, SIGNS)
    clf.model_.save(tmp_path / "m")
    loaded = thresher.load(tmp_path / "m")
    assert (loaded.loss, loaded.parameters["loss"]) == ("logistic", "logistic")


class StopAfter(Observer):
    """Stops after the first pass."""

    done = 0

    def tell(self, event, **facts):
        self.done += event in ("pass", "record")

    def stops(self):
        return self.done > 0


@pytest.mark.parametrize("made", [thresher.FTRLClassifier, thresher.CoordinateDescentClassifier])
@pytest.mark.parametrize(("first", "second"), [("logistic", "log_loss"), ("log_loss", "logistic")])
def test_checkpoints_of_either_name_resume(made, first, second, tmp_path):
    file = tmp_path / "c"
    settings = {"random_state": 0, "passes": 6}
    with pytest.raises(Interrupted):
        made(loss=first, **settings).fit(X, SIGNS, checkpoint=file, observer=StopAfter())
    resumed = made(loss=second, **settings).fit(X, SIGNS, checkpoint=file, resume=True)
    assert same(resumed.model_, made(loss=first, **settings).fit(X, SIGNS).model_)


# ---- grids, comparisons, health ------------------------------------------------------------------


def test_grids_take_the_names():
    grid = {"loss": ["log_loss", "hinge"], "l1": [0.1, 1.0]}
    search = thresher.OnePassSearchCV(thresher.FTRLClassifier(random_state=0), grid, cv=3).fit(
        X, SIGNS
    )
    assert {point["loss"] for point in search.cv_results_["params"]} == {"log_loss", "hinge"}
    assert search.best_estimator_.loss in ("log_loss", "hinge")
    plain = thresher.OnePassSearchCV(
        thresher.FTRLClassifier(random_state=0), {**grid, "loss": ["logistic", "hinge"]}, cv=3
    ).fit(X, SIGNS)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )
    GridSearchCV(thresher.FTRLClassifier(), {"loss": ["log_loss"]}, cv=2).fit(X, SIGNS)


def test_paths_comparisons_and_health_take_the_names():
    path = thresher.SparsityPath(thresher.FTRLRegressor(loss="squared_error")).fit(X, VALUES)
    assert path is not None
    settings = {"rules": ["ftrl"], "orders": 1, "folds": 2}
    found = thresher.compare(X, SIGNS, loss="log_loss", **settings)
    plain = thresher.compare(X, SIGNS, loss="logistic", **settings)
    assert found["ftrl"].error.mean == plain["ftrl"].error.mean
    assert found.about["loss"] == "logistic"
    from thresher.health import safe_step

    assert str(safe_step(X, loss="log_loss")) == str(safe_step(X, loss="logistic"))


# ---- errors --------------------------------------------------------------------------------------


def test_an_error_lists_the_losses_of_the_task_and_rule():
    with pytest.raises(ParameterError) as found:
        thresher.FTRLClassifier(loss="logg").fit(X, SIGNS)
    assert "loss must be one of 'logistic', 'hinge'" in str(found.value)
    assert "poisson" not in str(found.value)
    with pytest.raises(ParameterError) as found:
        thresher.OnePassRegressor(loss="logg").fit(X, VALUES)
    assert str(found.value).endswith("one of 'squared', 'huber', 'quantile', 'poisson'; got 'logg'")
    with pytest.raises(ParameterError, match="not allowed for a regressor; allowed are squared"):
        thresher.FTRLRegressor(loss="log_loss").fit(X, VALUES)
    with pytest.raises(ParameterError, match="without a margin; the rule margin-perceptron"):
        thresher.FTRLClassifier(loss="perceptron").fit(X, SIGNS)
    for value in (None, 3, ["logistic"]):
        with pytest.raises(ParameterError, match="loss must be one of 'logistic'"):
            thresher.FTRLClassifier(loss=value).fit(X, SIGNS)


# ---- the shell -----------------------------------------------------------------------------------


def test_the_shell_takes_the_names(tmp_path):
    rows = svmlight(tmp_path / "rows.svm")
    for command in (["train"], ["train", "--rule", "ftrl"], ["train", "--rule", "auto"]):
        models = []
        for loss in ("logistic", "log_loss"):
            models.append(tmp_path / loss)
            called(command[0], rows, "-m", models[-1], *command[1:], "--loss", loss, "--quiet")
        a, b = (thresher.load(model) for model in models)
        assert same(a, b)
        assert a.parameters.get("loss") == b.parameters.get("loss")
    grid = ["--grid", "loss=squared_error,absolute_error", "--quiet"]
    called("tune", rows, "-m", tmp_path / "best", *grid)
    assert thresher.load(tmp_path / "best").loss in ("squared", "absolute")
    shown = called("compare", rows, "--rules", "ftrl", "--orders", "1", "--loss", "log_loss").stdout
    assert "FTRL" in shown


def test_the_shell_lists_the_losses_of_the_task(tmp_path):
    rows = svmlight(tmp_path / "rows.svm")
    more = ["-m", tmp_path / "m", "--rule", "ftrl", "--loss", "logg"]
    done = called("train", rows, *more, code=2)
    assert done.stderr == (
        "--loss must be logistic, hinge, squared_hinge, modified_huber for classes, or squared, "
        "square, absolute, huber, epsilon_insensitive, quantile, poisson, clipped_square for "
        "numbers with the rule ftrl; got 'logg'\n"
    )
    done = called("train", rows, *more, "--multiclass", code=2)
    assert "poisson" not in done.stderr
    done = called("compare", rows, "--loss", "logg", "--multiclass", code=2)
    assert "poisson" not in done.stderr
