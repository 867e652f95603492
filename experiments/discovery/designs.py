"""All designs: what rows are like, and which features have an effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.discovery import real_rows, rows
from experiments.discovery.rows import Drawn, Generator

FORMS = ("crossfit", "stream")
NEWS = ("comp_vs_rec", "rec_vs_talk", "sci_vs_talk")
PERMUTED = (
    "crx", "krvskp", "magic04", "mushroom", "spambase", "wbc", "wdbc", "dexter", "dexter_scaled",
    "dorothea", "arcene", "basehock", "relathe", "pcmac", "a9a", "agaricus", "rcv1_small",
    "comp_vs_rec", "comp_vs_sci", "comp_vs_talk", "rec_vs_talk", "sci_vs_rec", "sci_vs_talk",
    "news20", "wpbc", "zoo", "housing",
)  # fmt: skip


@dataclass(frozen=True)
class Design:
    """A way to draw rows and labels.

    Attributes
    ----------
    name, title : str
    kind : {"plain", "real", "permuted", "violation", "extension"}
    draw : callable
        Takes a generator of random numbers; returns rows.
    repetitions : int
    forms : tuple of str
    """

    name: str
    title: str
    kind: str
    draw: Callable[[Generator], Drawn]
    repetitions: int = 100
    forms: tuple[str, ...] = FORMS


# ---- designs without violations ------------------------------------------------------------------


def _classified(rng: Generator, X: Any, low: float, high: float, share: float = 0.5) -> Drawn:
    score, true = rows.effect(rng, X, low=low, high=high)
    return Drawn(X, rows.labels(rng, score, share), true)


def _zipf(rng: Generator, n: int = 2000, share: float = 0.5) -> Drawn:
    return _classified(rng, rows.zipf(rng, n), 0.7, 2.0, share)


def _topics(rng: Generator, values: str) -> Drawn:
    X = rows.topics(rng)
    return _classified(rng, rows.binary(X) if values == "binary" else rows.unit(X), 0.5, 2.0)


def _gaussian(rng: Generator, correlation: float) -> Drawn:
    return _classified(rng, rows.gaussian(rng, correlation=correlation), 0.1, 0.4)


# ---- violations ----------------------------------------------------------------------------------


def _copies(rng: Generator) -> Drawn:
    """Each feature with effect has a near-copy without effect: 90 % of its rows are the same."""
    drawn = _zipf(rng)
    true = sp.csc_matrix(drawn.X)[:, np.flatnonzero(drawn.true)]
    columns = []
    for j in range(true.shape[1]):
        at = true.indices[true.indptr[j] : true.indptr[j + 1]]
        kept = at[rng.random(len(at)) < 0.9]
        fresh = rng.choice(drawn.X.shape[0], len(at) - len(kept), replace=False)
        columns.append(np.union1d(kept, fresh))
    at_rows = np.concatenate(columns)
    at_columns = np.repeat(np.arange(len(columns)), [len(c) for c in columns])
    copies = sp.csr_matrix(
        (np.ones(len(at_rows)), (at_rows, at_columns)), (drawn.X.shape[0], len(columns))
    )
    X = sp.csr_matrix(sp.hstack([drawn.X, copies]))
    return Drawn(X, drawn.y, np.concatenate([drawn.true, np.zeros(len(columns), bool)]))


def _length(rng: Generator, column: bool) -> Drawn:
    """The length of a row has an effect of its own; `column`: it is a feature, too."""
    X = rows.binary(rows.topics(rng))
    score, true = rows.effect(rng, X, low=0.5, high=2.0)
    long = np.log1p(np.asarray(X.sum(axis=1)).ravel())
    y = rows.labels(rng, score + 1.5 * (long - long.mean()))
    if not column:
        return Drawn(X, y, true)
    X = sp.csr_matrix(sp.hstack([X, sp.csr_matrix((long - long.mean())[:, None])]))
    return Drawn(X, y, np.append(true, True))


def _repeated(rng: Generator, groups: bool) -> Drawn:
    """Each row occurs three times, at random places; `groups`: copies are in one fold."""
    drawn = _zipf(rng)
    order = rng.permutation(np.repeat(np.arange(len(drawn.y)), 3))
    fit = {"groups": order} if groups else {}
    return Drawn(drawn.X[order], drawn.y[order], drawn.true, fit=fit)


def _sorted(rng: Generator) -> Drawn:
    drawn = _zipf(rng)
    order = np.argsort(drawn.y, kind="stable")
    return Drawn(drawn.X[order], drawn.y[order], drawn.true)


# ---- extensions ----------------------------------------------------------------------------------


def _regression(rng: Generator, kind: str, noise: str) -> Drawn:
    sparse = kind == "Zipf"
    X = rows.zipf(rng) if sparse else rows.gaussian(rng)
    score, true = rows.effect(rng, X, low=0.5 if sparse else 0.1, high=1.5 if sparse else 0.3)
    e = rng.standard_normal(len(score))
    if noise == "unequal":  # its size depends on other features
        other, _ = rows.effect(rng, X, low=0.5, high=1.0)
        e = e * np.exp(0.7 * other / other.std())
    if noise == "heavy":
        e = rng.standard_t(2.5, len(score))
    return Drawn(X, score + e, true, {"task": "regression"})


def _multiclass(rng: Generator, kind: str, number: int) -> Drawn:
    if kind == "Zipf":
        X, low, high = rows.zipf(rng, 4000, 10_000), 0.7, 2.0
    elif kind == "topics":
        X, low, high = rows.binary(rows.topics(rng, 4000, 5000)), 0.7, 2.0
    else:
        X, low, high = rows.gaussian(rng, 2000, 300), 0.2, 0.6
    y, true = rows.classes(rng, X, number, low, high)
    return Drawn(X, y, true)


def _groups(rng: Generator, kind: str) -> Drawn:
    """Groups of 10 features; 25 of them have an effect, by three features each."""
    X = rows.zipf(rng, 2000, 5000) if kind == "Zipf" else rows.gaussian(rng, correlation=0.5)
    members = np.arange(X.shape[1]) // 10
    groups = members.max() + 1
    known = np.flatnonzero(np.bincount(members, rows.counts_of(X)) >= 0.1 * X.shape[0])
    active = rng.choice(known[known < groups], 25, replace=False)
    at = (
        10 * active[:, None] + rng.permuted(np.tile(np.arange(10), (25, 1)), axis=1)[:, :3]
    ).ravel()
    at = np.sort(at[rows.counts_of(X)[at] > 0])
    sparse = sp.issparse(X)
    w = rows.weights(rng, X, at, 0.7 if sparse else 0.1, 2.0 if sparse else 0.3)
    score = X @ w
    true = np.zeros(groups, bool)
    true[np.unique(members[at])] = True
    y = rows.labels(rng, score - score.mean())
    return Drawn(X, y, true, {"feature_groups": members})


def _weighted(rng: Generator, kind: str) -> Drawn:
    drawn = _zipf(rng, 3000) if kind == "Zipf" else _gaussian(rng, 0.0)
    h = rng.choice([0.3, 1.0, 3.0], len(drawn.y))
    return Drawn(drawn.X, drawn.y, drawn.true, fit={"sample_weight": h})


def _persons(rng: Generator) -> Drawn:
    """Rows of 400 persons; each person has words, and a tendency, of their own; folds by person."""
    X = rows.zipf(rng, 2400, 8000)
    person = np.arange(2400) // 6
    own = rows.zipf(rng, 400, 8000, 4.0)
    X = rows.binary(X + own[person])
    score, true = rows.effect(rng, X, low=0.7, high=2.0)
    y = rows.labels(rng, score + 1.0 * rng.standard_normal(400)[person])
    return Drawn(X, y, true, fit={"groups": person})


# ---- the list ------------------------------------------------------------------------------------


def all_designs() -> list[Design]:
    """Return all designs."""
    found = [
        Design("zipf", "Zipf, 2,000 x 20,000", "plain", _zipf),
        Design("topics", "topics, 0/1, 3,000 x 8,000", "plain", partial(_topics, values="binary")),
        Design("topics_tf", "topics, rows of norm 1", "plain", partial(_topics, values="tf")),
        Design("gaussian", "Gaussian, independent, 2,000 x 1,000", "plain",
               partial(_gaussian, correlation=0.0)),
        Design("gaussian_ar", "Gaussian, AR(1), correlation 0.5", "plain",
               partial(_gaussian, correlation=0.5)),
    ]  # fmt: skip
    real = [(name, values) for name in NEWS for values in ("binary", "own")]
    real += [("rcv1_small", "binary"), ("rcv1_small", "own"), ("basehock", "binary"),
             ("dexter_scaled", "own")]  # fmt: skip
    for name, values in real:
        shown = "0/1" if values == "binary" else "its values"
        found.append(
            Design(f"{name}_{values}", f"{name}, {shown}", "real",
                   partial(real_rows.with_effects, name=name, values=values), 40)
        )  # fmt: skip
    found += [
        Design(f"permuted_{name}", name, "permuted", partial(real_rows.permuted, name=name), 12)
        for name in PERMUTED
    ]
    found += [
        Design("copies", "near-copies, 90 % of the rows", "violation", _copies, 60),
        Design("length", "row length has an effect", "violation",
               partial(_length, column=False), 60),
        Design("length_column", "the same, with a column of the length", "violation",
               partial(_length, column=True), 60),
        Design("repeated", "rows three times", "violation", partial(_repeated, groups=False), 60),
        Design("repeated_groups", "rows three times, groups=", "violation",
               partial(_repeated, groups=True), 60, ("crossfit",)),
        Design("sorted", "rows sorted by label", "violation", _sorted, 60),
        Design("a9a_own", "a9a: each column follows from others", "violation",
               partial(real_rows.with_effects, name="a9a", values="own"), 40),
    ]  # fmt: skip
    for kind in ("Gaussian", "Zipf"):
        for noise in ("normal", "unequal", "heavy"):
            found.append(
                Design(f"regression_{kind.lower()}_{noise}", f"regression, {kind}, {noise} noise",
                       "extension", partial(_regression, kind=kind, noise=noise), 60)
            )  # fmt: skip
    for kind in ("Zipf", "topics", "Gaussian"):
        for number in (4, 10):
            found.append(
                Design(f"classes_{kind.lower()}_{number}", f"{number} classes, {kind}",
                       "extension", partial(_multiclass, kind=kind, number=number), 30)
            )  # fmt: skip
    for kind in ("Gaussian", "Zipf"):
        found += [
            Design(f"groups_{kind.lower()}", f"groups of features, {kind}", "extension",
                   partial(_groups, kind=kind), 60),
            Design(f"weights_{kind.lower()}", f"weights of rows, {kind}", "extension",
                   partial(_weighted, kind=kind), 60),
        ]  # fmt: skip
    found += [
        Design("persons", "rows of persons, folds by person", "extension", _persons, 60,
               ("crossfit",)),
        Design("rare", "5 % positive, Zipf, 8,000 rows", "extension",
               partial(_zipf, n=8000, share=0.05), 60),
        Design("rare_news", "5 % positive, comp_vs_rec", "extension",
               partial(real_rows.with_effects, name="comp_vs_rec", values="binary", share=0.05),
               30),
    ]  # fmt: skip
    return found
