"""Train on each day's rows when they come: the model is that of one run over all days.

    python examples/daily_training.py
    python examples/daily_training.py MONDAY.vw TUESDAY.vw ...     # your files, of any size

The model file carries the state of the learner, so that no earlier day is read again. In the shell
each day is one command:

    thresher train TUESDAY.vw --from clicks.thresher -m clicks.thresher --keep-state
"""

import argparse
from pathlib import Path

import numpy as np

import thresher

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("files", nargs="*", metavar="FILE", help="rows as VW text, one file a day")
files = parser.parse_args().files

if not files:
    rng = np.random.default_rng(0)
    effects = rng.normal(size=200)
    for day in range(4):
        files.append(f"day{day}.vw")
        with open(files[-1], "w") as out:
            for _ in range(5000):
                words = rng.choice(200, 8, replace=False)
                label = 1 if effects[words].sum() + rng.logistic() > 0 else -1
                out.write(f"{label} |word {' '.join(f'w{word}' for word in words)}\n")

# The first day starts the model; each further day goes on from the file.
for number, file in enumerate(files):
    if number == 0:
        clf = thresher.OnePassClassifier(store="hashed", random_state=0)
        clf.partial_fit(thresher.scan(file), classes=[-1, 1])
    else:
        clf = thresher.load("clicks.thresher").estimator()
        print(f"{file}: accuracy before it is learned {clf.score(thresher.scan(file)):.3f}")
        clf.partial_fit(thresher.scan(file))
    clf.model_.save("clicks.thresher", state=True)
    size = Path("clicks.thresher").stat().st_size
    print(f"{file}: {clf.model_.nnz} weights, {size:,} bytes with the state")

whole = thresher.OnePassClassifier(store="hashed", random_state=0)
whole.partial_fit(thresher.scan(files), classes=[-1, 1])
same = (whole.model_.weights.tobytes(), whole.model_.intercept.tobytes()) == (
    clf.model_.weights.tobytes(),
    clf.model_.intercept.tobytes(),
)
print("the same weights as of one run, byte for byte" if same else "THEY DIFFER")

clf.model_.save("without.thresher")  # for prediction only
print(f"without the state: {Path('without.thresher').stat().st_size:,} bytes")
