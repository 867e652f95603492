"""Estimators to fit to sources, and comparisons of their models."""

import thresher

# Parameters that do not depend on the number of rows, which is not known for a source.
RULES = {
    "truncated": (thresher.TruncatedGradientClassifier, {"gravity": 1e-3}),
    "forward": (thresher.ForwardBackwardClassifier, {"l1": 1e-3}),
    "ftrl": (thresher.FTRLClassifier, {"l1": 0.5}),
    "dual": (thresher.DualAveragingClassifier, {"l1": 1e-3}),
    "averaged": (thresher.AveragedSGDClassifier, {"alpha": 0.01}),
    "perceptron": (thresher.MarginPerceptronClassifier, {}),
    "mirror": (thresher.MirrorDescentClassifier, {"l1": 1e-3}),
}
REGRESSORS = [
    (thresher.TruncatedGradientRegressor, {"gravity": 1e-3, "loss": "squared", "dtype": "float64"}),
    (thresher.FTRLRegressor, {"l1": 0.1, "loss": "huber", "dtype": "float64"}),
]
STORES = [("dense", "float32"), ("dense", "float64"), ("hashed", "float32"), ("hashed", "float64")]


def made(cls, params, **more):
    known = cls().get_params()
    wanted = {"passes": 1, "shuffle": False, "tol": None, **params, **more}
    return cls(**{name: value for name, value in wanted.items() if name in known})


def same(model, other):
    """Assert that two models are bit-identical."""
    assert model.indices.tolist() == other.indices.tolist()
    for name in ("weights", "intercept"):
        assert getattr(model, name).tobytes() == getattr(other, name).tobytes()
    if model.classes is None:
        assert other.classes is None
    else:
        assert model.classes.tolist() == other.classes.tolist()
    assert model.nnz > 0


def fitted(source, **params):
    return made(thresher.FTRLClassifier, {"l1": 0.5, "store": "hashed", **params}).fit(source)
