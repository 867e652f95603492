"""
Truncated gradient and FTRL, step by step
=========================================

Both rules set weights to exactly zero while they learn, in different ways. Truncated gradient
shrinks all weights every few steps. FTRL keeps a sum of gradients for each feature, and its weight
is zero while this sum is small.
"""

# %%
# Six of 60 features matter
# -------------------------
import matplotlib.pyplot as plt
import numpy as np

from thresher import FTRLClassifier, TruncatedGradientClassifier

rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 60)) * (rng.random((3000, 60)) < 0.3)
effects = np.zeros(60)
effects[:6] = [2.5, -2.0, 1.5, -1.2, 1.0, -0.8]
y = X @ effects + rng.logistic(size=3000) > 0

# %%
# Learning in small steps
# -----------------------
# The weights are noted after every 20 rows. The result is the same for any size of the steps.
rules = {
    "truncated gradient": TruncatedGradientClassifier(gravity=0.03, period=100, eta0=0.03),
    "FTRL": FTRLClassifier(l1=20.0, alpha=0.1, beta=0.1),
}
marks, paths = np.arange(20, 3001, 20), {}
for name, clf in rules.items():
    weights = []
    for end in marks:
        rows = slice(end - 20, end)
        weights.append(clf.partial_fit(X[rows], y[rows], classes=[False, True]).coef_[0])
    paths[name] = np.array(weights)
    print(f"{name}: {clf.model_.nnz} weights; {np.flatnonzero(clf.coef_[0]).tolist()}")

# %%
# The weights
# -----------
# Coloured lines have an effect, grey ones have none. Truncated gradient soon has small weights for
# everything, and truncates them every 100 rows. A weight of FTRL leaves zero when the sum of its
# gradients is large enough.
_, panels = plt.subplots(
    2, 2, figsize=(9, 5), sharex=True, sharey="row", height_ratios=(3, 1), layout="constrained"
)
colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
for column, (name, weights) in enumerate(paths.items()):
    above, below = panels[:, column]
    above.plot(marks, weights[:, 6:], color="#c3cad2", linewidth=0.7)
    for feature, colour in enumerate(colours):
        above.plot(marks, weights[:, feature], color=colour)
    above.set(title=name)
    below.plot(marks, (weights != 0).sum(axis=1), color="#000000")
    below.axhline(6, color="#8a94a0", linestyle=":")
    below.set(xlabel="rows", ylim=(0, 62))
panels[0, 0].set(ylabel="weight")
panels[1, 0].set(ylabel="nonzero")
for ax in panels.ravel():
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
