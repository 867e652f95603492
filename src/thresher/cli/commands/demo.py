"""`thresher demo`: learn from a random stream whose true weights are known."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from thresher import FeatureDiscovery, OnePassClassifier
from thresher.atomic import written_whole
from thresher.cli.render.output import is_shown, naming_output

_PER_ROW = 30  # features
_CHUNK = 20_000  # rows
_TEST = 50_000  # new rows, for the error
_DISCOVERY = 100_000  # rows that the discovery reads
_FDR = 0.1


class _Console(Console):
    """A console that does not end the process if the reader of standard output has closed it."""

    def on_broken_pipe(self) -> None:
        """Raise the error of the system, which is being handled."""
        raise


@dataclass
class Stream:
    """Random rows as in text: the r-th most frequent of `features` features has frequency ~ 1/r.

    The relevant features are frequent, but not the most frequent: each is in 0.5 % to 10 % of the
    rows. Their weights are +-2 to +-3; the label is drawn from the logistic model.
    """

    features: int
    relevant: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        common = _PER_ROW / np.log(self.features + 1)  # expected count of the most frequent feature
        low, high = int(common / 0.1) + 1, max(int(common / 0.005), self.relevant * 2)
        ranks = self.rng.choice(np.arange(low, low + high), self.relevant, replace=False)
        self.spread = 1 + 2 * int(self.rng.integers(self.features // 4, self.features // 2))
        while np.gcd(self.spread, self.features) != 1:
            self.spread += 2
        self.truth = self._number(ranks)
        self.weights = np.zeros(self.features)
        signs = np.where(np.arange(self.relevant) % 2, 1.0, -1.0)
        self.weights[self.truth] = signs * self.rng.uniform(2.0, 3.0, self.relevant)

    def _number(self, rank: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the feature of a frequency rank; ranks are spread over all feature numbers."""
        return rank * self.spread % self.features

    def rows(self, n: int) -> tuple[sp.csr_matrix, NDArray[np.int64], NDArray[np.float64]]:
        """Draw n rows, their labels, and the true probabilities."""
        u = self.rng.random(n * _PER_ROW)
        ranks = np.exp(u * np.log(self.features + 1)).astype(np.int64) - 1
        starts = np.arange(0, n * _PER_ROW + 1, _PER_ROW)
        X = sp.csr_matrix(
            (np.ones(n * _PER_ROW, np.float32), self._number(ranks), starts),
            shape=(n, self.features),
        )
        X.sum_duplicates()
        X.data[:] = 1.0
        p = 1.0 / (1.0 + np.exp(-(X @ self.weights)))
        return X, (self.rng.random(n) < p).astype(np.int64), p

    def chunks(
        self, examples: int
    ) -> Iterator[tuple[sp.csr_matrix, NDArray[np.int64], NDArray[np.float64]]]:
        """Draw all rows, in chunks."""
        for start in range(0, examples, _CHUNK):
            yield self.rows(min(_CHUNK, examples - start))


@naming_output()
def run(
    examples: int, features: int, relevant: int, seed: int, quiet: bool, html: str | None
) -> None:
    """Learn from the stream, find the relevant features, and print both results."""
    console = _Console(highlight=False)
    stream = Stream(features, relevant, np.random.default_rng(seed))
    console.print(
        f"{examples:,} rows of about {_PER_ROW} features, out of {features:,}; "
        f"the label depends on {relevant} of them.\n\n"
        "One pass, nothing to tune: OnePassClassifier().partial_fit(X, y)",
        soft_wrap=True,
    )
    clf, kept, seconds = _one_pass(console, stream, examples, quiet)
    _print_errors(console, stream, clf, examples, seconds)
    X = sp.vstack([rows for rows, _ in kept], format="csr")
    y = np.concatenate([labels for _, labels in kept])
    console.print(
        f"\nWhich features matter? FeatureDiscovery(fdr={_FDR}).fit(X, y), {len(y):,} rows"
    )
    with console.status("reading the rows twice") if not quiet else nullcontext():
        began = time.perf_counter()
        discovery = FeatureDiscovery(fdr=_FDR, random_state=seed).fit(X, y)
        seconds = time.perf_counter() - began
    _print_found(console, stream, discovery, seconds)
    if html is not None:
        discovery.report(html, title="thresher demo: features that matter")
        console.print(f"\nOpen this page in a browser: {html}", soft_wrap=True)


def _one_pass(
    console: Console, stream: Stream, examples: int, quiet: bool
) -> tuple[OnePassClassifier, list[tuple[sp.csr_matrix, NDArray[np.int64]]], float]:
    """Learn the stream; return the learner, the first rows, and the seconds of learning."""
    clf, kept = OnePassClassifier(), list[tuple[sp.csr_matrix, NDArray[np.int64]]]()
    seconds, shown = 0.0, 0
    plain = not quiet and not is_shown()  # print lines instead of a bar
    with Progress(
        TextColumn("{task.completed:>9,} rows"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TimeRemainingColumn(),
        console=console,
        disable=quiet or not is_shown(),
    ) as progress:
        bar = progress.add_task("", total=examples, loss=np.nan)
        for X, y, _ in stream.chunks(examples):
            began = time.perf_counter()
            clf.partial_fit(X, y, classes=[0, 1])
            seconds += time.perf_counter() - began
            if len(kept) * _CHUNK < _DISCOVERY:
                kept.append((X, y))
            last = clf.history_[-1]
            progress.update(bar, advance=X.shape[0], loss=last.loss)
            if plain and last.examples > shown:
                shown = last.examples
                console.print(f"  {last.examples:>9,} rows  loss {last.loss:.4f}")
    return clf, kept, seconds


def write(path: str, examples: int, features: int, relevant: int, seed: int) -> None:
    """Write the stream as VW text; names of relevant features begin with "true"."""
    stream = Stream(features, relevant, np.random.default_rng(seed))
    truth = set(stream.truth.tolist())
    with written_whole(path) as file:
        for X, y, _ in stream.chunks(examples):
            names = [f"true{j}" if j in truth else f"f{j}" for j in X.indices.tolist()]
            starts = X.indptr.tolist()
            lines = [
                f"{2 * label - 1} |x {' '.join(names[begin:end])}\n"
                for label, begin, end in zip(y.tolist(), starts, starts[1:], strict=False)
            ]
            file.write("".join(lines).encode())


def _print_errors(
    console: Console, stream: Stream, clf: OnePassClassifier, examples: int, seconds: float
) -> None:
    X, y, p = stream.rows(_TEST)
    error = float(np.mean(clf.predict(X) != y))
    best = float(np.mean(np.minimum(p, 1 - p)))  # expected error with the true weights
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    _print_table(
        console,
        ("error on new rows", f"{100 * error:.2f} % (with the true weights: {100 * best:.2f} %)"),
        ("training time", f"{seconds:.2f} s, {examples / seconds:,.0f} rows per second"),
        ("peak memory", f"{peak:,.0f} MiB"),
    )


def _print_found(
    console: Console, stream: Stream, discovery: FeatureDiscovery, seconds: float
) -> None:
    found, truth = set(discovery.selected_.tolist()), set(stream.truth.tolist())
    false = len(found - truth)
    expected = discovery.expected_false_
    _print_table(
        console,
        ("relevant features found", f"{len(found & truth)} of {len(truth)}"),
        ("irrelevant features found", f"{false} (expected: about {expected:.1f})"),
        ("time", f"{seconds:.2f} s"),
    )


def _print_table(console: Console, *rows: tuple[str, str]) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2))
    for row in rows:
        table.add_row(*row)
    console.print(table)
