"""Interrupt training and resume it: the model is the same, byte for byte.

    python examples/out_of_core_resume.py
    python examples/out_of_core_resume.py PART1.svm PART2.svm ...     # your files, of any size

Training is out-of-core: files are read block by block, so memory holds the weights and a few
blocks, never all rows. A checkpoint holds the state of training and the position in the files. By
hand you would press Ctrl-C and then run the same command with --resume.
"""

import argparse
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import numpy as np

THRESHER = [sys.executable, "-m", "thresher.cli"]  # the command `thresher`


def write(file, rows, seed):
    """Write svmlight rows of 20 features each; the first 50 of 100,000 features matter."""
    rng = np.random.default_rng(seed)
    features = np.sort((1e5 ** rng.random((rows, 20))).astype(int), axis=1)
    signs = np.where(features > 50, 0, np.where(features % 2, 1, -1)).sum(axis=1)
    labels = np.where(signs + rng.logistic(size=rows) > 0, 1, -1)
    with open(file, "w") as out:
        for label, row in zip(labels, features, strict=True):
            out.write(f"{label} {' '.join(f'{feature}:1' for feature in np.unique(row))}\n")


parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("files", nargs="*", metavar="FILE", help="rows as svmlight text, of any size")
files = parser.parse_args().files
if not files:
    files = [f"part{number}.svm" for number in range(4)]
    for number, file in enumerate(files):
        write(file, 10_000, seed=number)
total = sum(Path(file).stat().st_size for file in files)
print(f"{len(files)} files, {total / 1e6:.1f} MB")

train = [*THRESHER, "train", *files, "--rule", "ftrl", "--passes", "20", "--l1", "30", "--json"]

# Stop the first run as soon as it reports its first progress.
run = subprocess.Popen([*train, "-m", "night.thresher"], stdout=PIPE, stderr=PIPE, text=True)
run.stdout.readline()
run.send_signal(signal.SIGINT)
told = run.communicate()[1]
print(f"first run: exit code {run.returncode}, {told.strip().splitlines()[-1]}")

# The second run continues from there; the third is never interrupted.
subprocess.run([*train, "-m", "night.thresher", "--resume"], check=True, stdout=PIPE)
subprocess.run([*train, "-m", "whole.thresher"], check=True, stdout=PIPE)

night, whole = Path("night.thresher").read_bytes(), Path("whole.thresher").read_bytes()
print(f"interrupted and resumed: {len(night):,} bytes; in one go: {len(whole):,} bytes")
print("the same, byte for byte" if night == whole else "THEY DIFFER")
