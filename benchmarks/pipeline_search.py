"""Measure the search of a text pipeline against `GridSearchCV` of the same pipeline.

`python benchmarks/pipeline_search.py` searches 16 points in three folds of the training messages of
two newsgroups, by `OnePassSearchCV`, by `GridSearchCV`, and by `GridSearchCV` whose pipeline caches
its transformers on disk (``memory=``). The three ways take turns. It prints the median of the
seconds of each way, without the final fit, and the largest difference of the scores.
"""

from __future__ import annotations

import argparse
import tarfile
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from folder import DATA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline

from thresher import OnePassSearchCV, TruncatedGradientClassifier

GRID = {"clf__gravity": [1e-6, 1e-5, 1e-4, 1e-3], "clf__eta0": [0.03, 0.1, 0.3, 1.0]}


def messages(pair: tuple[str, str]) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Return the training messages of two newsgroups, and which one each is of."""
    texts, groups = [], []
    with tarfile.open(DATA / "20news-bydate.tar.xz") as archive:
        for member in archive:
            path = Path(member.name)
            wanted = path.parts[0].endswith("train") and path.parent.name in pair
            if member.isfile() and wanted and (stream := archive.extractfile(member)):
                texts.append(stream.read().decode("latin-1"))
                groups.append(path.parent.name)
    order = np.random.default_rng(0).permutation(len(texts))
    return [texts[i] for i in order], np.array(groups)[order]


def searched(made: Any, texts: list[str], y: Any) -> tuple[float, Any]:
    """Return the seconds of a search, and its mean scores."""
    began = time.perf_counter()
    search = made.fit(texts, y)
    return time.perf_counter() - began, search.cv_results_["mean_test_score"]


def main() -> None:
    """Search in turns, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    pair = ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware")
    parser.add_argument("--pair", nargs=2, default=pair)
    args = parser.parse_args()
    texts, y = messages(tuple(args.pair))
    clf = TruncatedGradientClassifier(passes=5, random_state=0, dtype="float64")
    pipeline = Pipeline([("text", TfidfVectorizer()), ("clf", clf)])
    shared = {"cv": StratifiedKFold(3), "refit": False}
    seconds: dict[str, list[float]] = {}
    scores: dict[str, Any] = {}
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            kept = Pipeline(pipeline.steps, memory=folder)
            for name, made in (
                ("OnePassSearchCV", OnePassSearchCV(pipeline, GRID, **shared)),
                ("GridSearchCV", GridSearchCV(pipeline, GRID, **shared)),
                ("GridSearchCV, memory=", GridSearchCV(kept, GRID, **shared)),
            ):
                took, scores[name] = searched(made, texts, y)
                seconds.setdefault(name, []).append(took)
    print(f"{len(texts)} messages, 16 points, 3 folds, {args.rounds} rounds")
    ours = median(seconds["OnePassSearchCV"])
    for name, took in seconds.items():
        gap = np.abs(scores[name] - scores["OnePassSearchCV"]).max()
        print(
            f"{name}: {median(took):.2f} s ({min(took):.2f} to {max(took):.2f}), "
            f"{median(took) / ours:.1f} times ours; scores differ by at most {gap:.2g}"
        )


if __name__ == "__main__":
    main()
