"""
How good is a model?
====================

``thresher.evaluate`` reads rows once and gives metrics with intervals, curves and calibration. A
second model on the same rows shows whether a difference is clear.
"""

# %%
# Two models
# ----------
# Ten of 30 columns matter. One model may use all columns, one only three.
import matplotlib.pyplot as plt
import numpy as np

import thresher
from thresher import FTRLClassifier

rng = np.random.default_rng(0)
X = rng.standard_normal((4000, 30))
y = X[:, :10] @ np.geomspace(1.5, 0.2, 10) + rng.logistic(size=4000) > 0
X_test, y_test = X[2000:], y[2000:]
full = FTRLClassifier(random_state=0).fit(X[:2000], y[:2000])
three = FTRLClassifier(target_nnz=3, random_state=0).fit(X[:2000], y[:2000])

# %%
# Metrics with intervals
# ----------------------
results = {
    "all columns": thresher.evaluate(full, X_test, y_test),
    "three columns": thresher.evaluate(three, X_test, y_test),
}
for name, result in results.items():
    metric = result.metrics["roc_auc"]
    print(f"{name}: ROC AUC {metric.value:.4f}, between {metric.low:.4f} and {metric.high:.4f}")
both = thresher.evaluate(full, X_test, y_test, against=three)
change = both.differences["accuracy"]
print(f"accuracy: {change.value:+.3f}, between {change.low:+.3f} and {change.high:+.3f}")

# %%
# Curves and calibration
# ----------------------
# Of rows with a predicted probability of 0.8, about 80 % should have the label: markers on the
# diagonal. Their size is the number of rows.
_, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
looks = (("#0072b2", "o", "-"), ("#d55e00", "s", "--"))
for (name, result), (colour, marker, line) in zip(results.items(), looks, strict=True):
    false, true = zip(*result.tables["roc_curve"], strict=True)
    left.plot(false, true, color=colour, linestyle=line, label=f"{name}, {result['roc_auc']:.3f}")
    bins = [one for one in result.tables["calibration"] if one["weight"]]
    right.scatter(
        [one["predicted"] for one in bins],
        [one["observed"] for one in bins],
        [one["weight"] / 2 for one in bins],
        colour, marker=marker, alpha=0.7, label=name,
    )  # fmt: skip
right.plot([0, 1], [0, 1], color="#8a94a0", linestyle=":")
left.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC curve and area")
right.set(xlabel="predicted probability", ylabel="observed share", title="calibration")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
plt.show()
