"""Find features with several workers, then in one process: the models are bit-identical.

    python examples/several_workers.py
    python examples/several_workers.py --address auto 'PART-*.svm'     # your files and cluster

Each worker has a part of the rows. Without an address, Ray starts two workers on this machine
(pip install 'thresher[ray]'). Without Ray, both runs are in this process. All workers must be able
to read the files.
"""

import argparse
import importlib.util
import time

import numpy as np

import thresher


def write(file, rows, seed):
    """Write svmlight rows of 20 features each; the first 30 of 20,000 features matter."""
    rng = np.random.default_rng(seed)
    features = np.sort((2e4 ** rng.random((rows, 20))).astype(int), axis=1)
    signs = np.where(features > 30, 0, np.where(features % 2, 1, -1)).sum(axis=1)
    labels = np.where(signs + rng.logistic(size=rows) > 0, 1, -1)
    with open(file, "w") as out:
        for label, row in zip(labels, features, strict=True):
            out.write(f"{label} {' '.join(f'{feature}:1' for feature in np.unique(row))}\n")


def fitted(workers, address):
    """Return a classifier with 30 weights; print stages, bytes sent and time."""
    began, sent = time.perf_counter(), []
    classifier = thresher.distributed.fit(
        thresher.StabilizedClassifier(target_nnz=30, random_state=0),
        files,
        workers=workers,
        address=address,
        watch=lambda stage: sent.append(stage.bytes),
    )
    where = "this process" if workers == 0 else "workers"
    print(
        f"{where}: {len(sent)} stages, {sum(sent) / 1e6:.1f} MB sent, "
        f"{time.perf_counter() - began:.1f} s"
    )
    return classifier


parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("files", nargs="?", help="glob of svmlight files; each file is a part")
parser.add_argument("--address", help="address of a Ray cluster; default: start one here")
options = parser.parse_args()
files = options.files
if files is None:
    files = "part-*.svm"
    for number in range(4):
        write(f"part-{number}.svm", 5_000, seed=number)

if importlib.util.find_spec("ray") is None:
    print("Ray is not installed: both runs are in this process")
    several = fitted(0, None)
else:
    several = fitted(None if options.address else 2, options.address or "local")
alone = fitted(0, None)

same = several.model_.weights.tobytes() == alone.model_.weights.tobytes()
print(f"{several.model_.nnz} weights: " + ("the same bits" if same else "THEY DIFFER"))
for feature in several.model_.top(5):
    print(f"feature {feature.name}: {several.model_.why(feature.name)}")
