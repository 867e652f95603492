"""Several threads that fit, continue, predict and search: with estimators and sources of their own,
and with shared ones. `make race` runs it with the thread sanitizer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import svmlight
from thresher import OnePassSearchCV, scan

Work = Callable[[], Any]


class Data:
    """A file with the rows of three classes, the same rows as a matrix, and a shared source."""

    def __init__(self, folder: Path) -> None:
        self.path = svmlight(folder / "rows.svm", rows=300, classes=(1, 2, 5), repeat=2)
        self.X, self.y = load_svmlight_file(str(self.path))
        self.two = np.where(self.y == 1, 1, -1)
        self.source = scan(self.path, threads=2)


def alone(data: Data) -> dict[str, Work]:
    """Return work that shares nothing but the rows; its results must not depend on the threads."""

    def weights(estimator: Any, *rows: Any) -> bytes:
        return estimator.fit(*rows).model_.weights.tobytes()

    def continued() -> bytes:
        estimator = thresher.FTRLClassifier(random_state=0)
        for part in range(0, 600, 100):
            estimator.partial_fit(
                data.X[part : part + 100], data.y[part : part + 100], classes=[1, 2, 5]
            )
            estimator.predict(data.X[:50])
        return estimator.model_.weights.tobytes()

    def searched() -> Any:
        search = OnePassSearchCV(
            thresher.FTRLClassifier(passes=2, random_state=0), {"l1": [0.1, 1.0]}, n_jobs=2
        )
        return search.fit(scan(data.path, threads=2)).cv_results_["mean_test_score"].tobytes()

    return {
        "file": lambda: weights(
            thresher.FTRLClassifier(random_state=0), scan(data.path, threads=3)
        ),
        "matrix": lambda: weights(
            thresher.TruncatedGradientClassifier(n_jobs=2, random_state=0), data.X, data.y
        ),
        "stabilized": lambda: weights(
            thresher.StabilizedClassifier(random_state=0), data.X, data.two
        ),
        "one-pass": lambda: weights(thresher.OnePassClassifier(random_state=0), data.X, data.two),
        "partial_fit": continued,
        "search": searched,
    }


def together(data: Data) -> dict[str, Work]:
    """Return work with one estimator and one source for all threads."""
    shared = thresher.FTRLClassifier(random_state=0).fit(data.X, data.y)
    fitted = thresher.TruncatedGradientClassifier(random_state=0).fit(data.X, data.y)
    right = fitted.decision_function(data.X).tobytes()

    def predicted() -> bool:
        return fitted.decision_function(data.X).tobytes() == right

    def read() -> int:
        return len(fitted.predict(data.source))

    def continued() -> bool:
        shared.partial_fit(data.X, data.y)
        return finite()

    def saved() -> bool:
        path = data.path.with_name(f"{threading.get_ident()}.thresher")
        shared.model_.save(path)
        return bool(np.isfinite(thresher.load(path).decision_function(data.X)).all())

    def finite() -> bool:
        return bool(np.isfinite(shared.decision_function(data.X)).all())

    return {
        "partial_fit": continued,
        "predict while fitting": finite,
        "predict": predicted,
        "source": read,
        "save": saved,
    }


def in_threads(works: list[Work], threads: int) -> list[list[Any]]:
    """Do all works in each of several threads at the same time; return the results."""
    results: list[list[Any]] = [[] for _ in range(threads)]
    barrier = threading.Barrier(threads)

    def run(number: int) -> None:
        barrier.wait()
        for turn in range(len(works)):  # each thread begins with another one
            place = (turn + number) % len(works)
            try:
                results[number].append((place, works[place]()))
            except Exception as error:  # the caller compares
                results[number].append((place, error))

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return [[result for _, result in sorted(found, key=lambda one: one[0])] for found in results]


def check(folder: Path, threads: int = 4, rounds: int = 1) -> int:
    """Assert that results do not depend on other threads; return the number of works done."""
    data = Data(folder)
    own = alone(data)
    expected = [work() for work in own.values()]
    done = 0
    for _ in range(rounds):
        for found in in_threads(list(own.values()), threads):
            for name, result, right in zip(own, found, expected, strict=True):
                assert result == right, f"{name}: {result!r}"[:500]
                done += 1
        shared = together(data)
        for found in in_threads(list(shared.values()), threads):
            for name, result in zip(shared, found, strict=True):
                assert not isinstance(result, Exception), f"{name}: {result!r}"
                assert result, name
                done += 1
    return done
