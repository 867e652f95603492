"""
Clicks in one pass
==================

A log of clicks is read once, line by line, with nothing to tune. Features are named, and there is
no list of all names beforehand.
"""

# %%
# The log
# -------
# VW text: a label, then namespaces with names. Some ads, sites and hours matter; users do not.
import pathlib
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import thresher
from thresher import LearningCurveDisplay, OnePassClassifier, scan

EFFECTS = {"ad_7": 2.0, "ad_13": -2.0, "site_news": 1.5, "site_spam": -2.5, "hour_3": -1.5}
SITES = ["news", "mail", "spam", "shop"]


def write(path, rows, seed):
    """Write a log: 1 is a click, -1 is none."""
    rng = np.random.default_rng(seed)
    lines = []
    columns = [rng.integers(count, size=rows) for count in (50, 4, 24, 3000)]
    for ad, site, hour, user in zip(*columns, strict=True):
        features = [f"ad_{ad}", f"site_{SITES[site]}", f"hour_{hour}"]
        score = -1.0 + sum(EFFECTS.get(feature, 0.0) for feature in features)
        click = 1 if rng.random() < 1 / (1 + np.exp(-score)) else -1
        lines.append(f"{click} |ad {features[0]} |page {' '.join(features[1:])} |who user_{user}\n")
    path.write_text("".join(lines))
    return path


folder = tempfile.TemporaryDirectory()
today = write(pathlib.Path(folder.name, "today.vw"), 15_000, seed=1)
tomorrow = write(pathlib.Path(folder.name, "tomorrow.vw"), 5_000, seed=2)
print(today.read_text().splitlines()[0])

# %%
# One pass
# --------
# The progressive loss is that of each row before it was learned, so it needs no other rows.
clf = OnePassClassifier(store="hashed", random_state=0).fit(scan(today))
LearningCurveDisplay.from_estimator(clf, name="one-pass")
result = thresher.evaluate(clf, scan(tomorrow))
print(f"the next day: ROC AUC {result['roc_auc']:.3f}, log loss {result['log_loss']:.3f}")
plt.show()

# %%
# What was learned
# ----------------
# The weights of the features that matter, beside the effects that made the clicks. An effect is
# known up to a constant for each kind of feature, which the intercept takes.
features = clf.model_.top(10)
names = [feature.name.split("^")[1] for feature in features][::-1]
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.barh(names, [feature.weight for feature in features][::-1], color="#0072b2", label="learned")
ax.plot([EFFECTS.get(name, 0.0) for name in names], names, "D", color="#d55e00", label="true")
ax.axvline(0, color="#8a94a0", linewidth=0.8)
ax.set(xlabel="weight")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
folder.cleanup()
