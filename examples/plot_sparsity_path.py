"""
How few weights are enough?
===========================

``SparsityPath`` trains models of 15 penalties and their folds together. It names the best model,
and the sparsest one within one standard error of it. Here the features are pixels, so that the
models can be looked at.
"""

# %%
# Digits 3 and 8
# --------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from thresher import FTRLClassifier, SparsityPath, SparsityPathDisplay

X, y = load_digits(return_X_y=True)
rows = np.isin(y, (3, 8))
X, y = X[rows] / 16, y[rows]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
print(f"{len(y_train)} training rows, {X.shape[1]} pixels")

# %%
# The path
# --------
# 15 penalties, five folds and all rows: 90 models from the same readings of the rows.
path = SparsityPath(FTRLClassifier(random_state=0), np.geomspace(0.2, 400, 15))
path.fit(X_train, y_train)
SparsityPathDisplay.from_estimator(path)
plt.show()

# %%
# The models
# ----------
# Blue pixels speak for 8, red ones for 3. The chosen model has fewer of them; its
# error in cross-validation is within one standard error of the best. The last model has ten times
# its penalty.
chosen = path.chosen_estimator_
sparse = FTRLClassifier(l1=10 * chosen.l1, random_state=0).fit(X_train, y_train)
shown = {"best": path.best_estimator_, "chosen": chosen, "penalty of chosen x 10": sparse}
_, panels = plt.subplots(1, 3, figsize=(8, 3.2), layout="constrained")
for ax, (name, clf) in zip(panels, shown.items(), strict=True):
    weights = clf.coef_.reshape(8, 8)
    limit = np.abs(weights).max()
    ax.imshow(weights, cmap="RdBu", vmin=-limit, vmax=limit)
    error = 1 - clf.score(X_test, y_test)
    ax.set(title=f"{name}\n{clf.model_.nnz} pixels, error {error:.1%}", xticks=[], yticks=[])
    print(f"{name}: {clf.model_.nnz} weights, {error:.1%} of other rows are wrong")
plt.show()
