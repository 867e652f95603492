"""Predict clicks: one pass over a log of clicks in VW text, with named features.

    python examples/click_prediction.py
    python examples/click_prediction.py TRAIN.vw TEST.vw     # your files; may be compressed

From the shell, where rows are only shuffled with --shuffle:

    thresher train example_clicks.vw -m clicks.thresher --target-nnz 30
    thresher inspect clicks.thresher --top 10
    thresher predict clicks.thresher example_tomorrow.vw --as probability -o scores.txt
"""

import argparse

import numpy as np
from sklearn.metrics import roc_auc_score

from thresher import FTRLClassifier, scan


def write(file, rows, seed):
    """Write a log: 1 is a click, -1 is none. Some ads, sites and hours matter; users do not."""
    rng = np.random.default_rng(seed)
    liked = {"ad_7": 2.0, "ad_13": -2.0, "site_news": 1.5, "site_spam": -2.5, "hour_3": -1.5}
    sites = ["site_news", "site_mail", "site_spam", "site_shop"]
    with open(file, "w") as log:
        for _ in range(rows):
            ad, site = f"ad_{rng.integers(50)}", rng.choice(sites)
            hour, user = f"hour_{rng.integers(24)}", f"user_{rng.integers(5_000)}"
            score = -1.0 + sum(liked.get(feature, 0.0) for feature in (ad, site, hour))
            click = 1 if rng.random() < 1 / (1 + np.exp(-score)) else -1
            log.write(f"{click} |ad {ad} |page {site} {hour} |who {user}\n")


def labels(file):
    """Return the label of each row, read block by block."""
    return np.concatenate([block.labels for block in scan(file).blocks()])


parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("files", nargs="*", metavar="FILE", help="training rows and test rows")
files = parser.parse_args().files
if len(files) not in (0, 2):
    parser.error("give two files, one to train on and one to test on, or none")
train, test = files or ("example_clicks.vw", "example_tomorrow.vw")
if not files:
    write(train, 40_000, seed=1)
    write(test, 10_000, seed=2)

# A hashed store needs no list of all names: its memory grows with the features that occur.
clf = FTRLClassifier(target_nnz=30, passes=1, store="hashed", random_state=0).fit(scan(train))

print("   rows   progressive loss")
for record in clf.history_:
    print(f"{record.examples:>7,}   {record.loss:.4f}")

scores = clf.decision_function(scan(test))
print(
    f"\nAUC on {len(scores):,} rows of another day: {roc_auc_score(labels(test) > 0, scores):.3f}"
)
print(f"{clf.model_.nnz} nonzero weights; the largest:")
for feature in clf.model_.top(8):
    print(f"  {feature.name:16} {feature.weight:+.2f}")
