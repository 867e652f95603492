"""Find how few features a regression needs: error against nonzeros, and the sparsest good model.

    python examples/sparse_regression.py
    python examples/sparse_regression.py ROWS.svm     # svmlight, .gz, .bz2; labels: numbers

Draws the curve into sparse_regression.png if matplotlib is installed.
"""

import argparse

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split

from thresher import FTRLRegressor, SparsityPath


def made_up(rows=1000, features=400, seed=0):
    """Draw rows whose values depend on 8 features, with decreasing weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    return X, X[:, :8] @ (0.7 ** np.arange(8)) + 0.7 * rng.standard_normal(rows)


parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("file", nargs="?", metavar="FILE", help="rows as svmlight text")
file = parser.parse_args().file
X, y = load_svmlight_file(file) if file else made_up()
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# 15 penalties, each on 5 folds and on all rows: 90 models, trained from the same reading.
# Without the second argument, the path finds a range itself, over four orders of magnitude.
regressor = FTRLRegressor(alpha=0.1, passes=10, random_state=0)
penalties = np.geomspace(0.05, 5.0, 15) * X_train.shape[0]
path = SparsityPath(regressor, penalties, scoring="neg_mean_squared_error", n_jobs=-1)
path.fit(X_train, y_train)
print(path.table(), "\n")
print(path.chart(), "\n")

for name, found in (("best", path.best_estimator_), ("chosen", path.chosen_estimator_)):
    error = np.mean((found.predict(X_test) - y_test) ** 2)
    print(f"{name:>6}: {found.model_.nnz:4} features, squared error on other rows {error:.4f}")
print("largest weights of the chosen model:")
for feature in path.chosen_estimator_.model_.top(8):
    print(f"{feature.name:>6} {feature.weight:+.3f}")

try:
    path.plot().figure.savefig("sparse_regression.png", dpi=120)
    print("the curve is in sparse_regression.png")
except ImportError as error:
    print(f"no picture: {error}")
