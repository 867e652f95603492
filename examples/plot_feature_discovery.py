"""
Which features matter?
======================

``FeatureDiscovery`` selects features with a stated share of false ones. In a simulation the truth
is known, so its promise can be checked: here about 10 % of the selected words may be false.
"""

# %%
# Rows like short texts
# ---------------------
# Words have very different frequencies, words of a topic go along with each other, and 20 of 600
# words have an effect on the label.
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegressionCV

from thresher import FeatureDiscovery

rng = np.random.default_rng(1)
of_topic = rng.dirichlet(np.full(600, 0.02), 10)
common = 1 / np.arange(1, 601)
mixture = rng.dirichlet(np.full(10, 0.3), 3000)
X = sp.csr_matrix(
    np.minimum(rng.poisson(15 * mixture @ of_topic + 20 * common / common.sum()), 1.0)
)
frequent = np.flatnonzero(np.asarray(X.sum(axis=0)).ravel() >= 60)
truth = np.zeros(600, bool)
truth[rng.choice(frequent, 20, replace=False)] = True
scores = X[:, truth] @ rng.choice([-1.5, 1.5], 20)
y = scores - scores.mean() + rng.logistic(size=3000) > 0

# %%
# Discovery, and a lasso
# ----------------------
# A lasso whose penalty is chosen by cross-validation predicts well, but most of its features have
# no effect.
discovery = FeatureDiscovery(fdr=0.1, random_state=0).fit(X, y)
selected = discovery.get_support()
lasso = LogisticRegressionCV(
    Cs=np.geomspace(0.01, 1, 7), l1_ratios=(1.0,), solver="liblinear", scoring="neg_log_loss",
    use_legacy_attributes=False, cv=3, random_state=0,
).fit(X, y)  # fmt: skip
kept = lasso.coef_[0] != 0
for name, found in (("discovery", selected), ("lasso", kept)):
    print(f"{name}: {(found & truth).sum()} of 20 true words, {(found & ~truth).sum()} false ones")
print(f"discovery expects {discovery.expected_false_:.1f} false words")

# %%
# The evidence
# ------------
# ``z`` is the evidence that a word adds something to all others. Each marker is a word.
evidence, rows = np.abs(discovery.z_), np.asarray(X.sum(axis=0)).ravel()
_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, words, marker, colour in (
    ("without effect", ~truth, "o", "#8a94a0"),
    ("with effect", truth, "D", "#d55e00"),
):
    ax.scatter(rows[words], evidence[words], 18, colour, marker=marker, alpha=0.8, label=name)
ax.scatter(rows[selected], evidence[selected], 90, "none", edgecolors="#0072b2", label="selected")
ax.set(xscale="log", xlabel="rows that have the word", ylabel="evidence |z|")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
