"""Find the features that matter, with a stated share of false ones.

    python examples/feature_discovery.py
    python examples/feature_discovery.py ROWS.svm     # svmlight, .gz, .bz2; the truth is unknown

A single fit has weights, but does not tell which of its features matter. Feature discovery
measures the evidence for each feature on rows that the model has not learned, and compares it with
labels that are drawn from the model. Stability selection asks which features many fits agree on.
"""

import argparse

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from thresher import FeatureDiscovery, FTRLClassifier, StabilitySelection


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
print(f"one fit, the 50 largest weights:  {told(once.model_.indices, truth)}")

# 2 x 25 fits on halves; a feature is kept if at least 80 % of them select it.
often = StabilitySelection(
    FTRLClassifier(target_nnz=50), pairs=25, threshold=0.8, n_jobs=-1, random_state=0
).fit(X, y)
print(f"stability selection of such fits: {told(often.selected_, truth)}")
print(f"  {often.selected_without_signal_}")

# About 10 % of the selected features are expected to be false.
discovery = FeatureDiscovery(fdr=0.1, refit=True, n_jobs=-1, random_state=0).fit(X, y)
print(f"feature discovery, 10 % false:    {told(discovery.selected_, truth)}")
print(f"  false ones expected: {discovery.expected_false_:.2f}")

# Without signal, usually nothing is selected.
shuffled = np.random.default_rng(1).permutation(y)
nothing = FeatureDiscovery(fdr=0.1, n_jobs=-1, random_state=0).fit(X, shuffled)
print(f"the same with shuffled labels:    {len(nothing.selected_)} features\n")

print(discovery.table(20))
strongest = discovery.findings(1)[0].feature
print(f"\nThe evidence for feature {strongest} in words:\n{discovery.why(strongest)}")
