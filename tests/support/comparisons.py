"""Data for tests of `compare`, and the part of a result that must be reproducible."""

import numpy as np


def problem(rows=240, columns=25, seed=0, classes=2, noise=1.0):
    """Return rows and labels that depend on three columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.5)
    score = X[:, 0] - 2 * X[:, 3] + X[:, 7] + noise * rng.normal(size=rows)
    if classes == 0:
        return X, score
    return X, np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))


def plain(row):
    """Return the result of a rule without its times."""
    found = row.__dict__ | {"seconds": None, "runs": None}
    return found, [{k: v for k, v in run.items() if k != "seconds"} for run in row.runs]
