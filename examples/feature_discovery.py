"""Find the features that matter, with a bound on the number of false ones.

    python examples/feature_discovery.py
    python examples/feature_discovery.py ROWS.svm     # svmlight, .gz, .bz2; the truth is unknown

A single fit finds features, but does not tell whether it would find them again on other rows.
Stability selection fits many random halves of the rows, and keeps features that nearly all find.
"""

import argparse

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from thresher import FTRLClassifier, StabilitySelection, StabilizedClassifier


def made_up(rows=1500, features=3000, relevant=15, seed=0):
    """Draw sparse rows, and labels that depend on the first features."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((rows, relevant)) * (rng.random((rows, relevant)) < 0.3)
    noise = sp.random(
        rows, features - relevant, 0.01, random_state=seed, data_rvs=rng.standard_normal
    )
    scores = signal @ rng.choice([-2.5, 2.5], relevant)
    X = sp.hstack([sp.csr_matrix(signal), noise], "csr")
    return X, scores + rng.logistic(size=rows) > 0, set(range(relevant))


def told(found, truth):
    """Return how many features were found and, if the truth is known, how many are right."""
    found = set(np.asarray(found).tolist())
    if truth is None:
        return f"{len(found)} features"
    right = f"{len(found & truth)} of {len(truth)} true ones"
    return f"{len(found)} features, {right}, {len(found - truth)} false"


parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("file", nargs="?", metavar="FILE", help="rows as svmlight text")
file = parser.parse_args().file
if file:
    (X, y), truth = load_svmlight_file(file), None
else:
    X, y, truth = made_up()
print(f"{X.shape[0]:,} rows, {X.shape[1]:,} features\n")

once = FTRLClassifier(target_nnz=50, random_state=0).fit(X, y)
print(f"one fit, the 50 largest weights:   {told(once.model_.indices, truth)}")

# 2 x 25 fits on halves; a feature is kept if at least 80 % of them select it.
often = StabilitySelection(
    FTRLClassifier(target_nnz=50), pairs=25, threshold=0.8, n_jobs=-1, random_state=0
).fit(X, y)
print(f"stability selection of such fits:  {told(often.selected_, truth)}")
print(f"  false ones expected: {often.false_selections_bound_.number:.2f} at most")
print(f"  {often.selected_without_signal_}")

# One fit whose 16 paths must agree: no bound, but the evidence for each feature.
stabilized = StabilizedClassifier(target_nnz=20, random_state=0).fit(X, y)
print(f"stabilized classifier, 20 weights: {told(stabilized.model_.indices, truth)}\n")

print("feature  selected in  why the stabilized classifier kept or dropped it")
for feature in often.top(20):
    mark = "" if truth is None else " true" if feature.name in truth else " false"
    why = stabilized.model_.why(feature.name)
    print(f"{feature.name:>7} {feature.probability:>11.0%}{mark:6} {str(why).partition(': ')[2]}")
