"""`thresher train`: rules, parameters, validation, passes and caches."""

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import called
from support.training_cases import events, lines, trained
from thresher.rules import RULES

# ---- rules and parameters ------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_every_rule(folder, rule):
    options = ["--rule", rule, "--seed", "3", "--passes", "5", "--quiet"]
    options += ["--n-nonzero", "40"] if rule == "hard-threshold" else []
    model, _ = trained(folder, "rows.svm", *options)
    loaded = thresher.load(model)
    assert loaded.parameters["rule"] == rule
    if "random_state" in RULES[rule].parameters:
        assert loaded.parameters["random_state"] == 3
    assert 0 < loaded.nnz <= 60
    assert loaded.n_features == 60
    predicted = np.array(lines(called("predict", model, folder / "rows.svm")), float)
    _, y = load_svmlight_file(str(folder / "rows.svm"))
    assert np.mean(np.sign(predicted) == y) > 0.8
    shown = called("inspect", model, "--top", "3").stdout
    assert rule in shown


@pytest.mark.parametrize(
    ("rule", "options", "params"),
    [
        ("truncated-gradient", ["--gravity", "0.01", "--eta0", "0.2"], {"gravity": 0.01}),
        ("truncated-gradient", ["--average", "--l2", "1e-3"], {"average": True, "l2": 1e-3}),
        ("truncated-gradient", ["--no-fit-intercept"], {"fit_intercept": False}),
        ("forward-backward", ["--l1", "0.001", "--dtype", "float64"], {"l1": 0.001}),
        ("ftrl", ["--l1", "2", "--alpha", "0.3", "--beta", "2"], {"l1": 2, "alpha": 0.3}),
        ("ftrl", ["--target-nnz", "7"], {"target_nnz": 7}),
        ("dual-averaging", ["--l1", "0.01", "--loss", "hinge"], {"loss": "hinge"}),
        ("margin-perceptron", ["--margin", "2"], {"margin": 2}),
        ("mirror-descent", ["--l1", "0.01"], {"l1": 0.01}),
        ("hard-threshold", ["--n-nonzero", "4"], {"n_nonzero": 4}),
        ("coordinate-descent", ["--l1", "0.1"], {"l1": 0.1}),
        ("stabilized", ["--paths", "4", "--keep", "0.9"], {"paths": 4, "keep": 0.9}),
    ],
)
def test_options_reach_the_learner(folder, rule, options, params):
    model, _ = trained(folder, "rows.svm", "--rule", rule, *options, "--quiet")
    plain, _ = trained(folder, "rows.svm", "--rule", rule, "--quiet", name="plain.thresher")
    changed, default = thresher.load(model), thresher.load(plain)
    for name, value in params.items():
        assert changed.parameters[name] == value
        assert default.parameters[name] != value
    assert (changed.weights.tobytes(), changed.intercept.tobytes()) != (
        default.weights.tobytes(),
        default.intercept.tobytes(),
    )
    if "target_nnz" in params or "n_nonzero" in params:
        assert changed.nnz <= next(iter(params.values()))


def test_the_command_line_and_the_estimator_train_the_same_model(folder):
    X, y = load_svmlight_file(str(folder / "rows.svm"))
    options = ["--rule", "truncated-gradient", "--gravity", "0.001", "--passes", "3", "--quiet"]
    model, _ = trained(folder, "rows.svm", *options)
    clf = thresher.TruncatedGradientClassifier(gravity=0.001, passes=3, shuffle=False, tol=None)
    loaded, fitted = thresher.load(model), clf.fit(X, y.astype(int)).model_
    assert loaded.weights.tobytes() == fitted.weights.tobytes()
    assert loaded.intercept.tobytes() == fitted.intercept.tobytes()
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


# ---- validation and passes -----------------------------------------------------------------------


def test_validation_keeps_the_best_pass(folder):
    """With too long steps, the loss on the validation rows falls, then rises."""
    options = ["--valid", str(folder / "other.svm"), "--patience", "2", "--json"]
    options += ["--rule", "truncated-gradient", "--eta0", "3", "--decay", "1", "--gravity", "0"]
    model, done = trained(folder, "rows.svm", "--passes", "60", *options)
    losses = [event["loss"] for event in events(done) if event["event"] == "pass"]
    best = int(np.argmin(losses))
    assert len(losses) < 60
    assert best < len(losses) - 1
    Z, z = load_svmlight_file(str(folder / "other.svm"))
    kept = np.mean(np.log1p(np.exp(-z * thresher.load(model).decision_function(Z))))
    assert kept == pytest.approx(losses[best], rel=1e-5)
    assert events(done)[-1]["valid_loss"] == losses[best]


def test_passes_and_shuffling(folder):
    models = [
        trained(folder, "rows.svm", "--quiet", *options)[0].read_bytes()
        for options in (
            ["--passes", "2"],
            ["--passes", "3"],
            ["--passes", "3", "--shuffle"],
            ["--passes", "3", "--shuffle", "--seed", "1"],
            ["--passes", "3", "--shuffle", "--seed", "1", "--threads", "1"],
        )
    ]
    assert len(set(models)) == 4
    assert models[3] == models[4]


def test_a_cache_gives_the_same_model(folder):
    cache = folder / "rows.cache"
    plain, _ = trained(folder, "rows.vw", "--passes", "2", name="plain.thresher")
    model, done = trained(folder, "rows.vw", "--passes", "2", "--cache", str(cache))
    assert "writing the cache" in done.stderr
    assert thresher.load(model).weights.tobytes() == thresher.load(plain).weights.tobytes()
    assert thresher.load(model).names == thresher.load(plain).names
    before = model.read_bytes()
    _, done = trained(folder, "rows.vw", "--passes", "2", "--cache", str(cache))
    assert "writing" not in done.stderr
    assert model.read_bytes() == before
    _, done = trained(folder, "rows.vw", "--bits", "8", "--cache", str(cache))
    assert "bits was null and is 8" in done.stderr
    piped, _ = trained(
        folder, "-", "--passes", "2", "--cache", str(cache), stdin=(folder / "rows.vw").read_bytes()
    )
    assert thresher.load(piped).weights.tobytes() == thresher.load(plain).weights.tobytes()
    assert thresher.load(piped).names == thresher.load(plain).names
