"""Judge a model on rows that it did not learn from, and compare it with a sparser one.

    python examples/evaluate_models.py
    python examples/evaluate_models.py TRAIN.svm TEST.svm     # svmlight or VW text; two classes

Writes evaluation.html and comparison.html.
"""

import argparse
import pathlib

import numpy as np

import thresher
from thresher import FTRLClassifier, scan


def made_up(path, rows, seed):
    """Write visits of a shop: the label is whether the visitor bought something."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(rows):
        page, hour, ad = rng.integers(30), rng.integers(24), rng.integers(200)
        score = 1.5 * (page == 3) + 0.8 * (page < 8) - 0.7 * (hour < 7) + 0.6 * (ad % 10 == 0) - 1.5
        bought = 1 if rng.random() < 1 / (1 + np.exp(-score)) else -1
        lines.append(f"{bought} |page p{page} |hour h{hour} |ad a{ad}\n")
    path.write_text("".join(lines))
    return path


parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("files", nargs="*", metavar="FILE", help="rows to learn, and other rows")
files = parser.parse_args().files
if not files:
    files = [
        made_up(pathlib.Path("visits.vw"), 8000, 0),
        made_up(pathlib.Path("later.vw"), 4000, 1),
    ]
train, test = (scan(file) for file in files)

full, sparse = (
    FTRLClassifier(l1=l1, store="hashed", passes=3, random_state=0).fit(train) for l1 in (0, 30)
)
print(f"weights: {full.model_.nnz} and {sparse.model_.nnz}\n")

# One reading of the other rows: metrics with intervals, curves, calibration, thresholds.
found = thresher.evaluate(full, test)
print(found, "\n")
best = max(found.tables["thresholds"], key=lambda line: line["f1"] or 0)
print(f"largest F1: {best['f1']:.3f}, at the probability {best['threshold']}\n")
found.report("evaluation.html")

# Both models on the same rows. An interval that contains 0 is no clear difference.
both = thresher.evaluate(full, test, against=sparse)
for name in ("accuracy", "roc_auc", "log_loss"):
    one = both.differences[name]
    print(f"{name}: {one.value:+.4f}, between {one.low:+.4f} and {one.high:+.4f}")
print(f"p value of DeLong's test: {both.tests['delong']['p_value']:.2g}")
both.report("comparison.html")
