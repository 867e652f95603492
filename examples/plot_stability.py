"""
Are the same features found again?
==================================

Two samples of the same data should give about the same features. This compares three ways to choose
30 of 1,000 words, each on eight random halves of the rows.
"""

# %%
# The rows
# --------
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from thresher import (
    FTRLClassifier,
    StabilityDisplay,
    StabilizedClassifier,
    TruncatedGradientClassifier,
    stability_score,
)

rng = np.random.default_rng(0)
often = 0.4 / np.arange(1, 1001) ** 0.6
X = sp.csr_matrix((rng.random((1600, 1000)) < often).astype(float))
truth = rng.choice(np.arange(5, 150), 20, replace=False)
y = X[:, truth] @ rng.choice([-3.0, 3.0], 20) + rng.logistic(size=1600) > 0
halves = [rng.choice(1600, 800, replace=False) for _ in range(8)]

# %%
# The runs
# --------
# kappa is 1 if all runs select the same features, and 0 if they agree as far as by chance.
estimators = {
    "stabilized": StabilizedClassifier(target_nnz=30, random_state=0),
    "FTRL": FTRLClassifier(target_nnz=30, random_state=0),
    "truncated gradient, one pass": TruncatedGradientClassifier(
        target_nnz=30, passes=1, random_state=0
    ),
}
runs = {
    name: [estimator.fit(X[half], y[half]).model_ for half in halves]
    for name, estimator in estimators.items()
}
kappas = {
    name: stability_score([model.indices for model in models], n_features=1000)
    for name, models in runs.items()
}
for name, models in runs.items():
    right = np.mean([np.isin(model.indices, truth).sum() for model in models])
    print(f"{name}: kappa {kappas[name]:.2f}, {right:.1f} of 20 true words")

# %%
# Agreement
# ---------
# Features in order of the share of runs that select them. The sharper a curve falls, the more the
# runs agree.
ax = None
for name, models in runs.items():
    display = StabilityDisplay.from_supports(models, 1000, kind="ranks", name=name, ax=ax)
    ax = display.ax_
plt.show()
