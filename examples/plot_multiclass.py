"""
Ten classes at once
===================

All classes are learned from one reading of the rows, each against all others. With images as rows,
the weights of each class can be looked at.
"""

# %%
# Handwritten digits
# ------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from thresher import FTRLClassifier, evaluate

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.4, random_state=0)
clf = FTRLClassifier(target_nnz=25, random_state=0).fit(X_train, y_train)
print(f"{clf.model_.nnz} weights for {len(clf.classes_)} classes")

# %%
# The weights
# -----------
# Each class has at most 25 of 64 pixels. Blue pixels speak for the digit, red ones against it.
_, panels = plt.subplots(2, 5, figsize=(8, 3.6), layout="constrained")
for digit, ax in enumerate(panels.ravel()):
    weights = clf.coef_[digit].reshape(8, 8)
    limit = np.abs(weights).max()
    ax.imshow(weights, cmap="RdBu", vmin=-limit, vmax=limit)
    ax.set(title=digit, xticks=[], yticks=[])
plt.show()

# %%
# Which digits are confused?
# --------------------------
result = evaluate(clf, X_test, y_test)
table = np.array(result.tables["confusion_matrix"]["rows"])
wrong = table - np.diag(np.diag(table))
print(f"accuracy {result['accuracy']:.3f}")
_, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
picture = ax.imshow(wrong, cmap="Blues")
for true, predicted in zip(*np.nonzero(wrong), strict=True):
    dark = wrong[true, predicted] > wrong.max() / 2
    ax.text(
        predicted, true, wrong[true, predicted],
        ha="center", va="center", color="#ffffff" if dark else "#000000",
    )  # fmt: skip
ax.set(xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))
ax.set_title("wrong rows")
plt.show()
