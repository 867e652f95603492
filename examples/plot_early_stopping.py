"""
Early stopping and learning curves
==================================

With many passes and no penalty, a model learns its training rows by heart, and becomes too sure of
its predictions. Rows that are kept apart show when to stop. Here a penalty helps more.
"""

# %%
# Few rows, many features
# -----------------------
import matplotlib.pyplot as plt
import numpy as np

from thresher import AdaGradClassifier, LearningCurveDisplay, evaluate

rng = np.random.default_rng(0)
X = rng.standard_normal((1800, 300))
y = X[:, :8].sum(axis=1) + rng.logistic(size=1800) > 0
train, valid, test = slice(0, 400), slice(400, 900), slice(900, None)

# %%
# Three ways to learn
# -------------------
# ``tol`` ends training when the loss on ``eval_set`` has not improved for ``patience`` passes, and
# the weights of the best pass are kept. With ``tol=None`` all passes are made.
ways = {
    "all 40 passes": AdaGradClassifier(l1=0.0, passes=40, tol=None, random_state=0),
    "early stopping": AdaGradClassifier(l1=0.0, passes=40, tol=0.0, patience=3, random_state=0),
    "with a penalty": AdaGradClassifier(l1=0.05, passes=40, tol=None, random_state=0),
}
losses = {}
for name, clf in ways.items():
    clf.fit(X[train], y[train], eval_set=(X[valid], y[valid]))
    result = evaluate(clf, X[test], y[test])
    losses[name] = result["log_loss"]
    print(
        f"{name}: {clf.history_[-1].examples:,} rows learned; on other rows "
        f"log loss {losses[name]:.2f}, {1 - result['accuracy']:.0%} wrong"
    )

# %%
# The curves
# ----------
# The progressive loss falls, because rows were seen in earlier passes. Only the loss on rows that
# were kept apart shows it.
display = LearningCurveDisplay.from_estimator(ways["all 40 passes"], name="all 40 passes")
LearningCurveDisplay.from_estimator(ways["with a penalty"], name="with a penalty", ax=display.axes_)
plt.show()
