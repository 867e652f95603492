"""
Stop a run, resume it, get the same bits
========================================

A long run writes checkpoints. After a crash or Ctrl-C it goes on where it was, and the final model
is that of a run that was never interrupted, bit for bit.
"""

# %%
# Rows in a file
# --------------
import pathlib
import tempfile

import matplotlib.pyplot as plt
import numpy as np

from thresher import FTRLClassifier, Interrupted, Observer, scan

rng = np.random.default_rng(0)
folder = tempfile.TemporaryDirectory()
file, checkpoint = (pathlib.Path(folder.name, name) for name in ("rows.svm", "run.checkpoint"))
signs = rng.choice([-1, 1], 20)
with open(file, "w") as out:
    for _ in range(4000):
        features = np.unique((500 ** rng.random(12)).astype(int))
        score = signs[features[features < 20]].sum() + rng.logistic()
        out.write(f"{1 if score > 0 else -1} {' '.join(f'{one}:1' for one in features)}\n")

# %%
# An interrupted run
# ------------------
# The observer asks for the end after three of eight passes, as Ctrl-C does in the shell.


class ThreePasses(Observer):
    """Stop after three passes."""

    made = 0

    def tell(self, event, **facts):
        """Count passes."""
        self.made += event == "pass"

    def stops(self):
        """Return whether to stop."""
        return self.made >= 3


clf = FTRLClassifier(l1=5.0, passes=8, random_state=0)
try:
    clf.fit(scan(file), checkpoint=checkpoint, observer=ThreePasses())
except Interrupted as stop:
    print(stop)
size = checkpoint.stat().st_size

# %%
# Resumed, and in one go
# ----------------------
resumed = clf.fit(scan(file), checkpoint=checkpoint, resume=True)
whole = FTRLClassifier(l1=5.0, passes=8, random_state=0).fit(scan(file))
same = resumed.coef_.tobytes() == whole.coef_.tobytes()
print(f"a checkpoint of {size:,} bytes; the weights are {'the same' if same else 'DIFFERENT'}")

# %%
# Both histories
# --------------
# Records of the resumed run lie on those of the whole run, also after the interruption.
_, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, run, style in (("in one go", whole, "-"), ("interrupted and resumed", resumed, "s")):
    rows = [record.examples for record in run.history_]
    losses = [record.loss for record in run.history_]
    colour = "#0072b2" if style == "-" else "#d55e00"
    ax.plot(rows, losses, style, color=colour, markerfacecolor="none", label=name)
ax.axvline(12_000, color="#8a94a0", linestyle=":")
ax.annotate(" interrupted", (12_000, max(losses)), color="#5a6470")
ax.set(xscale="log", xlabel="rows learned", ylabel="progressive loss")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
folder.cleanup()
