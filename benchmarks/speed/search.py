"""Speeds of searches: many models in one pass, against fits one after the other.

The rows are those of core.py: 73 features each, the r-th feature with frequency 1/r, unit norm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import sklearn
from lanes import lanes_of, peer_of, told
from sklearn.model_selection import GridSearchCV, KFold

from core import ETA, stream
from speed.line import Line
from thresher import (
    FTRLClassifier,
    OnePassSearchCV,
    SparsityPath,
    TruncatedGradientClassifier,
    _core,
)

GRAVITIES = np.geomspace(1e-8, 1e-4, 16)
SKLEARN = f"scikit-learn {sklearn.__version__}"
SHARED: dict[str, Any] = {"cv": KFold(3), "scoring": "neg_log_loss"}  # folds are runs of rows


def ours(jobs: int, gravities: Any = GRAVITIES, **more: Any) -> OnePassSearchCV:
    """Return our search, over gravities."""
    model = TruncatedGradientClassifier(
        eta0=ETA, fit_intercept=False, shuffle=False, passes=1, dtype="float32"
    )
    return OnePassSearchCV(model, {"gravity": gravities}, n_jobs=jobs, **{**SHARED, **more})


def same_scores(found: Any, peer: Any) -> str:
    """Return the best log losses of both searches; ours may be larger by at most 0.002."""
    best = [-float(search.best_score_) for search in (found, peer)]
    assert best[0] <= best[1] + 0.002, best
    return f"best log loss {best[0]:.4f} / {best[1]:.4f}"


def searches(full: bool) -> Iterator[Line]:
    """Yield `OnePassSearchCV` against `GridSearchCV`, both with two jobs."""
    for name, width, must in (("47k", 47_000, 20.0), ("2^20", 1 << 20, 15.0)):
        X, y = stream(60_000 if full else 30_000, width)
        peer = GridSearchCV(peer_of(), {"alpha": GRAVITIES}, n_jobs=2, **SHARED)
        yield Line(
            f"OnePassSearchCV, 16 points x 3 folds, {X.shape[0]:,} rows, {name} features",
            lambda X=X, y=y: ours(2).fit(X, y),
            lambda X=X, y=y, peer=peer: peer.fit(X, y),
            f"GridSearchCV(SGDClassifier, n_jobs=2) of {SKLEARN}",
            must,
            check=same_scores,
        )


def lanes(full: bool) -> Iterator[Line]:
    """Yield 15 lanes in units of one model: an epoch of the core's loop."""
    widths = {"47k": (47_000, 2.0), "2^20": (1 << 20, 2.0), "2^24": (1 << 24, 1.5)}
    for name, (width, must) in widths.items():
        X, y = stream(200_000 if full else 60_000, width)
        batch = _core.sparse_batch(X.indptr, X.indices, X.data, width, y.astype(float))
        alone = _core.make_learner("truncated_gradient", "dense", "float32", width, *told(1e-5))
        many = lanes_of(np.linspace(0, 1e-5, 15), width, "auto")

        def learned(model: Any, batch: Any = batch) -> Any:
            model.learn(batch)
            return model

        yield Line(
            f"15 lanes of truncated gradient, {name} features",
            lambda many=many, learned=learned: learned(many),
            lambda alone=alone, learned=learned: learned(alone),
            "one model",
            must,
            unit=True,
            check=same_losses,
        )


def same_losses(many: Any, alone: Any) -> str:
    """Return the mean loss of the last lane and of the single model, which are equal."""
    found = [many.loss_sums()[-1] / many.steps()[-1], alone.loss_sum / alone.steps]
    assert abs(found[0] - found[1]) < 1e-6, found
    return f"mean loss {found[0]:.4f} / {found[1]:.4f}"


def two_threads(full: bool) -> Iterator[Line]:
    """Yield a search on two threads, in units of two halves of it at the same time.

    The halves are searches over every second gravity, one on each of two threads: nothing is
    shared between them but the rows. This is what two independent processes gain. 85 % of their
    gain is a ratio of 1 / 0.85.
    """
    X, y = stream(60_000 if full else 30_000, 1 << 20)
    gravities = np.geomspace(1e-8, 1e-4, 32)

    def halves() -> Any:
        with ThreadPoolExecutor(2) as pool:
            some = [ours(1, gravities[i::2], refit=False) for i in range(2)]
            return list(pool.map(lambda search: search.fit(X, y), some))

    def check(found: Any, both: Any) -> str:
        best = -found.best_score_, min(-half.best_score_ for half in both)
        assert best[0] == best[1], best
        return f"best log loss {best[0]:.4f} / {best[1]:.4f}"

    yield Line(
        f"OnePassSearchCV, 32 points x 3 folds, {X.shape[0]:,} rows, n_jobs=2",
        lambda: ours(2, gravities, refit=False).fit(X, y),
        halves,
        "two searches of 16 points at the same time",
        1 / 0.85,
        unit=True,
        check=check,
    )


def paths(full: bool) -> Iterator[Line]:
    """Yield `SparsityPath` of FTRL against a fit for each point and fold."""
    X, y = stream(60_000 if full else 15_000, 47_000)
    model = FTRLClassifier(alpha=0.1, shuffle=False, dtype="float32", passes=1)
    strengths, folds = np.geomspace(0.01, 10.0, 16), KFold(3)

    def fits() -> Any:
        search = GridSearchCV(model, {"l1": strengths}, cv=folds, scoring="neg_log_loss")
        search.fit(X, y)
        for strength in strengths:  # a path also has the models of all rows
            search.best_estimator_.set_params(l1=strength).fit(X, y)
        return search

    def check(found: Any, peer: Any) -> str:
        losses = found.errors_.min(), -peer.best_score_
        assert abs(losses[0] - losses[1]) < 1e-6, losses
        return f"best log loss {losses[0]:.4f} / {losses[1]:.4f}"

    yield Line(
        f"SparsityPath of FTRL, 16 points x 3 folds, {X.shape[0]:,} rows, 47k features",
        lambda: SparsityPath(model, strengths, cv=folds, scoring="neg_log_loss").fit(X, y),
        fits,
        "plain fits of FTRLClassifier",
        3.0,
        check=check,
    )


PARTS: tuple[Callable[[bool], Iterator[Line]], ...] = (searches, lanes, two_threads, paths)


def lines(full: bool) -> Iterator[Line]:
    """Yield the lines of searches and lanes."""
    for part in PARTS:
        yield from part(full)
