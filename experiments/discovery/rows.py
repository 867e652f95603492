"""Rows of known distributions, and labels that depend on a few known features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Generator = np.random.Generator


@dataclass(frozen=True)
class Drawn:
    """Rows, labels, and which features have an effect.

    Attributes
    ----------
    X : CSR matrix or array
    y : array of shape (rows,)
    true : array of bool
        Of each feature, or of each group of features.
    options : mapping
        Parameters of `FeatureDiscovery`.
    fit : mapping
        Further arguments of `fit`.
    """

    X: Any
    y: NDArray[Any]
    true: NDArray[np.bool_]
    options: Mapping[str, Any] = field(default_factory=dict)
    fit: Mapping[str, Any] = field(default_factory=dict)


# ---- rows ----------------------------------------------------------------------------------------


def zipf(rng: Generator, rows: int = 2000, features: int = 20_000, most: float = 8.0) -> Any:
    """Return 0/1 rows; the r-th feature has the frequency min(1/2, most / r)."""
    share = np.minimum(0.5, most / np.arange(1, features + 1))
    counts = rng.binomial(rows, share)
    columns = np.repeat(np.arange(features), counts)
    X = sp.csr_matrix((np.ones(len(columns)), (rng.integers(0, rows, len(columns)), columns)),
                      (rows, features))  # fmt: skip
    X.sum_duplicates()
    X.data[:] = 1.0
    return X


def topics(
    rng: Generator, rows: int = 3000, words: int = 8000, count: int = 20, length: float = 90.0
) -> Any:
    """Return counts of words in documents; each document has a few of 20 topics."""
    base = 1.0 / (10.0 + np.arange(words))
    spread = base * rng.gamma(0.3, size=(count, words))
    spread /= spread.sum(axis=1, keepdims=True)
    lengths = np.maximum(5, rng.lognormal(np.log(length), 0.6, rows)).astype(int)
    mixture = rng.dirichlet(np.full(count, 0.1), rows)
    tokens = np.stack([rng.multinomial(n, m) for n, m in zip(lengths, mixture, strict=True)])
    which, found = [], []
    for topic in range(count):
        documents = np.repeat(np.arange(rows), tokens[:, topic])
        which.append(documents)
        found.append(rng.choice(words, len(documents), p=spread[topic]))
    at = np.concatenate(which), np.concatenate(found)
    return sp.csr_matrix((np.ones(len(at[0])), at), (rows, words))  # duplicates are added


def gaussian(
    rng: Generator, rows: int = 2000, features: int = 1000, correlation: float = 0.0
) -> NDArray[np.float64]:
    """Return normal values; neighbouring features have this correlation, AR(1)."""
    X = rng.standard_normal((rows, features))
    if correlation:
        fresh = np.sqrt(1 - correlation**2)
        for j in range(1, features):
            X[:, j] = correlation * X[:, j - 1] + fresh * X[:, j]
    return X


def binary(X: Any) -> Any:
    """Return the rows with 1 for every value that is not 0."""
    X = sp.csr_matrix(X, copy=True)
    X.data = (X.data != 0).astype(np.float64)
    return X


def unit(X: Any) -> Any:
    """Return rows of norm 1 with log(1 + count)."""
    X = sp.csr_matrix(X, copy=True)
    X.data = np.log1p(X.data)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / np.maximum(norms, 1e-12)) @ X)


# ---- effects -------------------------------------------------------------------------------------


def counts_of(X: Any) -> NDArray[np.int64]:
    """Return the number of rows with each feature."""
    if sp.issparse(X):
        return np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    return np.asarray((X != 0).sum(axis=0))


def chosen(rng: Generator, X: Any, count: int = 50, least: float = 0.008) -> NDArray[np.intp]:
    """Return features with effect: all frequencies, in equal parts by powers of 2.

    Features in fewer than `least` of the rows, and in more than 60 %, are not taken, unless rows
    are dense.
    """
    rows = counts_of(X)
    if not sp.issparse(X):
        return rng.choice(X.shape[1], count, replace=False)
    fit = np.flatnonzero((rows >= max(15, least * X.shape[0])) & (rows <= 0.6 * X.shape[0]))
    level = np.log2(rows[fit]).astype(int)
    weight = 1.0 / np.bincount(level)[level]
    return rng.choice(fit, min(count, len(fit) // 2), replace=False, p=weight / weight.sum())


def weights(
    rng: Generator, X: Any, at: NDArray[np.intp], low: float, high: float
) -> NDArray[np.float64]:
    """Return weights of either sign, in units of the size of a feature's values."""
    w = np.zeros(X.shape[1])
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=0)).ravel()[at] / counts_of(X)[at]
    else:
        squares = (X[:, at] ** 2).mean(axis=0)
    w[at] = rng.choice([-1, 1], len(at)) * rng.uniform(low, high, len(at)) / np.sqrt(squares)
    return w


def effect(
    rng: Generator, X: Any, count: int = 50, low: float = 0.7, high: float = 2.0
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the sum of the effects in each row, with mean 0, and the features with effect."""
    at = chosen(rng, X, count)
    w = weights(rng, X, at, low, high)
    score = X @ w
    return score - score.mean(), w != 0


def labels(rng: Generator, score: NDArray[np.float64], share: float = 0.5) -> NDArray[np.int64]:
    """Return labels 0 and 1; about this share is 1."""
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        if np.mean(1 / (1 + np.exp(-score - middle))) < share:
            low = middle
        else:
            high = middle
    return (rng.random(len(score)) < 1 / (1 + np.exp(-score - low))).astype(np.int64)


def classes(
    rng: Generator, X: Any, number: int, low: float, high: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return labels of several classes; a feature has effects on about half of the classes."""
    at = chosen(rng, X)
    score = np.zeros((X.shape[0], number))
    for k in range(number):
        some = at[rng.random(len(at)) < 0.5]
        w = weights(rng, X, some, low, high) if len(some) else np.zeros(X.shape[1])
        score[:, k] = X @ w
    score -= score.mean(axis=0)
    score += rng.gumbel(size=score.shape)
    true = np.zeros(X.shape[1], bool)
    true[at] = True
    return score.argmax(axis=1), true
