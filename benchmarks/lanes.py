"""Many models from one pass, compared with one model and with scikit-learn.

One run, interleaved, best of several: `python benchmarks/lanes.py [--rows 500000] [--repeats 5]`.

The rows are those of core.py: 73 features each, the r-th feature with frequency 1/r, unit norm.

1. 15 lanes against one model, truncated gradient, float32, period 10, constant rates, gravities
   from 0 to 1e-5: one epoch of the core's loop on learners with allocated memory, for every vector
   width of the machine. The last lane is checked against the single model.
2. A grid of 16 gravities in lanes against 16 fits of `SGDClassifier(loss="log_loss", penalty="l1",
   alpha=gravity, learning_rate="constant", eta0=0.5, max_iter=1, tol=None, shuffle=False,
   fit_intercept=False)`, in its faster number type; the mean training losses of both are shown.
3. `OnePassSearchCV` over 16 points and 5 folds against `GridSearchCV(SGDClassifier(...))` with the
   same parameters, both with two jobs, folds in the order of the rows, scored by log loss and
   refitted; the chosen models are scored on separate rows. Widths as above, fewer rows.
4. 20 newsgroups, 20 classes, against scikit-learn's one-vs-rest of the same SGDClassifier (which
   trains classes one after the other), five passes in the order of the rows; also test accuracies.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from folder import DATA
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV

from core import ETA, WIDTHS, stream
from thresher import OnePassSearchCV, TruncatedGradientClassifier, _core, datasets
from thresher.rules.core_args import core_parameters


def told(gravity: float) -> tuple[dict[str, float], dict[str, str]]:
    """Return the core's parameters of one model."""
    model = TruncatedGradientClassifier(gravity=gravity, eta0=ETA, fit_intercept=False)
    return core_parameters("truncated-gradient", model.get_params(), None)


def lanes_of(gravities: Any, width: int, level: str) -> _core.Lanes:
    """Return lanes with these gravities."""
    numbers, words = zip(*[told(g) for g in gravities], strict=True)
    n = len(numbers)
    return _core.make_lanes(
        "truncated_gradient", "dense", "float32", width, list(numbers), list(words), [0] * n,
        [-1] * n, level,
    )  # fmt: skip


def levels() -> list[str]:
    """Return the vector widths of this machine."""
    found = []
    for level in ("portable", "avx2", "avx512"):
        try:
            lanes_of([0.0, 0.0], 1, level)
        except ValueError:
            continue
        found.append(level)
    return found


def best(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the smallest time of each job, over interleaved runs."""
    times = dict.fromkeys(jobs, np.inf)
    for _ in range(repeats):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            times[name] = min(times[name], time.perf_counter() - began)
    return times


def against_one(rows: int, repeats: int, count: int) -> None:
    """Print the time of `count` lanes, in units of one model."""
    gravities = np.linspace(0, 1e-5, count)
    print(f"{count} lanes, in units of one model (Mnnz/s of the one model)")
    for name, width in WIDTHS.items():
        X, y = stream(rows, width)
        batch = _core.sparse_batch(X.indptr, X.indices, X.data, width, y)
        alone = _core.make_learner("truncated_gradient", "dense", "float32", width, *told(1e-5))
        many = {level: lanes_of(gravities, width, level) for level in levels()}
        jobs: dict[str, Callable[[], Any]] = {"one": lambda a=alone, b=batch: a.learn(b)}
        jobs |= {level: lambda m=made, b=batch: m.learn(b) for level, made in many.items()}
        times = best(jobs, repeats)
        worst = max(
            abs(made.loss_sums()[-1] / made.steps()[-1] - alone.loss_sum / alone.steps)
            for made in many.values()
        )
        ratios = "  ".join(f"{level} {times[level] / times['one']:.2f}" for level in many)
        speed = X.nnz / times["one"] / 1e6
        print(f"  {name:5} {ratios}   ({speed:.0f} Mnnz/s; losses differ by {worst:.1e})")


def against_sklearn(rows: int, repeats: int) -> None:
    """Print the time of 16 fits of scikit-learn, in units of 16 lanes."""
    gravities = np.geomspace(1e-8, 1e-5, 16)
    print("16 fits of scikit-learn, in units of one pass of 16 lanes")
    for name, width in WIDTHS.items():
        X, y = stream(rows, width)
        batch = _core.sparse_batch(X.indptr, X.indices, X.data, width, y)
        made: dict[str, _core.Lanes] = {}
        peers: dict[str, list[SGDClassifier]] = {}

        def lanes(level: str, width: int = width, batch: Any = batch, made: Any = made) -> None:
            made[level] = lanes_of(gravities, width, level)
            made[level].learn(batch)

        def peer(dtype: str, X: Any = X, y: Any = y, peers: Any = peers) -> None:
            data = X.astype(dtype)
            peers[dtype] = [peer_of(alpha=g).fit(data, y) for g in gravities]

        jobs: dict[str, Callable[[], Any]] = {
            level: lambda level=level: lanes(level) for level in levels()
        }
        jobs |= {dtype: lambda dtype=dtype: peer(dtype) for dtype in ("float32", "float64")}
        times = best(jobs, repeats)
        fastest = min(("float32", "float64"), key=lambda dtype: times[dtype])
        ratios = "  ".join(f"{level} {times[fastest] / times[level]:.1f}x" for level in made)
        raw = made[levels()[-1]].predict(batch)
        ours = np.logaddexp(0, -y[:, None] * raw).mean(axis=0)
        theirs = [
            np.logaddexp(0, -y * model.decision_function(X)).mean() for model in peers[fastest]
        ]
        print(
            f"  {name:5} {ratios}   (peer {fastest}, {times[fastest]:.1f} s; mean loss "
            f"{np.mean(ours):.4f} / {np.mean(theirs):.4f})"
        )


def peer_of(**params: Any) -> SGDClassifier:
    """Return scikit-learn's model with the same objective, rate and order of rows."""
    told = {"loss": "log_loss", "penalty": "l1", "learning_rate": "constant", "eta0": ETA,
            "max_iter": 1, "tol": None, "shuffle": False, "fit_intercept": False}  # fmt: skip
    return SGDClassifier(**(told | params))


def search(rows: int, repeats: int) -> None:
    """Print the time of a search of scikit-learn, in units of ours."""
    gravities = np.geomspace(1e-8, 1e-4, 16)
    print("GridSearchCV of 16 points x 5 folds with 2 jobs, in units of OnePassSearchCV")
    for name, width in WIDTHS.items():
        X, y = stream(rows + rows // 5, width)
        X, X_test, y, y_test = X[:rows], X[rows:], y[:rows], y[rows:]
        model = TruncatedGradientClassifier(
            eta0=ETA, fit_intercept=False, shuffle=False, passes=1, dtype="float32"
        )
        ours = OnePassSearchCV(
            model, {"gravity": gravities}, cv=5, scoring="neg_log_loss", n_jobs=2
        )
        theirs = GridSearchCV(
            peer_of(), {"alpha": gravities}, cv=5, scoring="neg_log_loss", n_jobs=2
        )
        times = best(
            {"ours": lambda s=ours, X=X, y=y: s.fit(X, y),
             "theirs": lambda s=theirs, X=X, y=y: s.fit(X, y)}, repeats,
        )  # fmt: skip
        lost = [
            float(np.logaddexp(0, -y_test * s.decision_function(X_test)).mean())
            for s in (ours, theirs)
        ]
        print(
            f"  {name:5} {times['theirs'] / times['ours']:.1f}x   ({times['ours']:.2f} s / "
            f"{times['theirs']:.2f} s; chosen {ours.best_params_['gravity']:.1e} / "
            f"{theirs.best_params_['alpha']:.1e}, test loss {lost[0]:.4f} / {lost[1]:.4f})"
        )


def newsgroups(repeats: int) -> None:
    """Print the time of scikit-learn's one-vs-rest, in units of lanes."""
    try:
        data = datasets.load("news20", DATA)
    except (FileNotFoundError, KeyError, ValueError) as error:
        print(f"20 newsgroups: skipped, {error}")
        return
    X, y = data.X_train, data.y_train
    ours = TruncatedGradientClassifier(
        gravity=1e-6, eta0=ETA, passes=5, shuffle=False, dtype="float32", fit_intercept=False
    )
    theirs = peer_of(alpha=1e-6, max_iter=5)
    times = best({"ours": lambda: ours.fit(X, y), "theirs": lambda: theirs.fit(X, y)}, repeats)
    scores = [model.score(data.X_test, data.y_test) for model in (ours, theirs)]
    print(
        f"20 newsgroups, 20 classes, 5 passes: {times['theirs'] / times['ours']:.1f}x   "
        f"({times['ours']:.2f} s / {times['theirs']:.2f} s; test accuracy "
        f"{scores[0]:.4f} / {scores[1]:.4f})"
    )


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--lanes", type=int, default=15)
    parser.add_argument("--only", choices=["one", "grid", "search", "newsgroups"])
    args = parser.parse_args()
    few = max(1, args.repeats // 2)
    for name, job in (
        ("one", lambda: against_one(args.rows, args.repeats, args.lanes)),
        ("grid", lambda: against_sklearn(args.rows, few)),
        ("search", lambda: search(args.rows // 4, few)),
        ("newsgroups", lambda: newsgroups(args.repeats)),
    ):
        if args.only in (None, name):
            job()


if __name__ == "__main__":
    main()
