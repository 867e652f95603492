"""Jobs for tests of averaging: rows in files, one file for each piece of a part."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import thresher
from oracles.averaging import averaging
from support.rule_cases import CASES, draw_values
from thresher import _core
from thresher.data.labels import Labels, ManyClasses, NumericLabels
from thresher.data.source import Source
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.loop import ClusterRun, ContinueLater, StageReport, run_stages
from thresher.distributed.engine.pieces import ClusterJob
from thresher.distributed.modes.average import AverageMode
from thresher.rules import RULES, core_args

WIDTH, SEED = 9, 5

# Irrational numbers with irrational ratios. With others, intercepts (sums of slopes of +-1 or +-2
# where losses are linear) would meet kinks exactly: 0 or 1 of the clipped square, margins of other
# losses. There the oracle and the rule, which round differently, may disagree whether a row has a
# nonzero slope. The row is then an update for only one of them, and means over parts differ by more
# than rounding.
CLASS_WEIGHTS = {-1: 2**0.5 / 2, 0: 7**0.5 / 2, 1: 3**0.5 / 2, 2: 5**0.5 / 2}


@dataclass(frozen=True)
class PieceFiles:
    """Rows in files: one file for each piece of each part."""

    names: list[list[str]]

    @property
    def parts(self) -> int:
        return len(self.names)

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        mine = self.names[part]
        return thresher.scan(mine if pieces != len(mine) else [mine[piece]])


@dataclass
class Case:
    """Rows by parts and pieces, a rule, and its parameters."""

    rule: str
    params: dict[str, Any]
    rows: list[list[tuple[np.ndarray, np.ndarray]]]  # of each part, of each piece
    ranges: int = 1
    classes: list[int] = field(default_factory=lambda: [-1, 1])

    @property
    def rounds(self) -> int:
        return len(self.rows[0])

    @property
    def regression(self) -> bool:
        return not self.classes

    @property
    def width(self) -> int:
        return 0 if self.params.get("store") == "hashed" else WIDTH

    @contextmanager
    def job(self, checkpoints: bool = False) -> Iterator[ClusterJob]:
        """Write the rows to files, and return the job."""
        with tempfile.TemporaryDirectory() as folder:
            names = []
            for number, pieces in enumerate(self.rows):
                names.append([f"{folder}/{number}-{i}.svm" for i in range(len(pieces))])
                for name, (X, y) in zip(names[-1], pieces, strict=True):
                    Path(name).write_text("".join(map(_line, X, y)))
            labels: Labels = (
                NumericLabels(self.params["loss"]) if self.regression else self._labels()
            )
            counts = [sum(len(y) for _, y in pieces) for pieces in self.rows]
            task = "regressor" if self.regression else "classifier"
            where = f"{folder}/checkpoint" if checkpoints else None
            yield ClusterJob(
                self.rule, task, self.params, PieceFiles(names), labels, self.width, counts,
                SEED, self.ranges, folder=where,
            )  # fmt: skip

    def _labels(self) -> Labels:
        return ManyClasses(self.classes, 0.0 if self.params.get("loss") == "clipped_square" else -1)

    def expected(self, target: int = 1) -> tuple[np.ndarray, float, list[float]]:
        """Return the oracle's weights, intercept and losses for the output of a class."""
        numbers, words = core_args.core_parameters(self.rule, self.params, None, max(self.width, 1))
        params: dict[str, Any] = numbers | words | {"average": bool(self.params.get("average"))}
        if self.rule == "margin-perceptron":
            params["margin"] = self.params["margin"]
        core = RULES[self.rule].core
        rounds = []
        for number in range(self.params["passes"] * self.rounds):
            passes, piece = divmod(number, self.rounds)
            rounds.append(
                [self._given(part, piece, passes, target) for part in range(len(self.rows))]
            )
        name = "averaged" if core == "averaged_sgd" else core
        return averaging(CASES[self.rule].part, name, WIDTH, params, rounds, self.rounds)

    def _given(self, part: int, piece: int, passes: int, target: int) -> Any:
        X, y = self.rows[part][piece]
        if self.params["shuffle"] is not False:
            place = part * 2**40 + piece * 2**20
            order = _core.path_order(SEED, place, passes, len(y))
            X, y = X[order], y[order]
        by_class = self.params.get("class_weight") or {}
        weights = np.array([by_class.get(int(label), 1.0) for label in y])
        if not self.regression:
            low = 0.0 if self.params.get("loss") == "clipped_square" else -1.0
            y = np.where(y == target, 1.0, low)
        return X, y, weights


def _line(x: np.ndarray, y: float) -> str:
    pairs = " ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(x) if v)
    return f"{float(y)!r} {pairs}\n"


Trouble = Callable[[InProcessExecutor, StageReport], Any]


def run(
    case: Case,
    hosts: int = 1,
    every: int | None = None,
    trouble: Trouble | None = None,
    stop: int | None = None,
) -> tuple[ClusterRun, list[StageReport]]:
    """Run a case to its end.

    `every`: stages between two checkpoints; None for no checkpoints. `trouble` is called after each
    stage, and may break something. `stop`: after this stage the run stops, and is resumed with
    another executor.
    """
    reports: list[StageReport] = []
    with case.job(every is not None) as job:
        mode = AverageMode(job, case.rounds)
        folder = None if every is None else CheckpointFolder(str(job.folder))
        executor = InProcessExecutor(mode, folder, hosts)

        def watch(report: StageReport) -> bool:
            reports.append(report)
            if trouble is not None:
                trouble(executor, report)
            return report.stage == stop

        try:
            return run_stages(mode, executor, folder, every or 1, None, watch), reports
        except ContinueLater:
            assert folder is not None
            executor = InProcessExecutor(mode, folder, hosts)
            stop = None
            return run_stages(
                mode, executor, folder, every or 1, folder.committed(), watch
            ), reports


def defaults(rule: str, task: str, **given: Any) -> dict[str, Any]:
    """Return all parameters of a rule."""
    table = RULES[rule].parameters
    values = {name: p.default_for(task) for name, p in table.items()}  # type: ignore[arg-type]
    rate = RULES[rule].rate_from_rows  # "auto" depends on the rows
    numbers = {rate: 1.0} if rate and RULES[rule].own[rate].auto is None else {}
    return core_args.with_numbers(rule, values | numbers | given)


@st.composite
def cases(draw: st.DrawFn, rule: str, dtype: str | None = None) -> Case:
    """Draw a case of 1 to 4 parts and 1 to 3 rounds in a pass; some pieces may have no rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    own = draw_values(draw, CASES[rule].averaged)
    if own.get("shrink") == "round":
        own["ceiling"] = 0.3
    task = draw(st.sampled_from(["classifier", "regressor"]))
    if rule == "margin-perceptron":
        task = "classifier"
    params = defaults(rule, task, **own, passes=draw(st.integers(1, 3)))
    params["shuffle"] = draw(st.sampled_from(["each", False]))
    if task == "regressor" and "loss" in params:
        params["loss"] = draw(st.sampled_from(["huber", "squared" if rule == "ftrl" else "huber"]))
    elif "loss" in params:
        params["loss"] = draw(st.sampled_from(["logistic", "hinge", "clipped_square"]))
    if rule != "mirror-descent":
        params["store"] = draw(st.sampled_from(["dense", "hashed"]))
        params["dtype"] = dtype or draw(st.sampled_from(["float32", "float64"]))
    parts, rounds = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    classes = [] if task == "regressor" else draw(st.sampled_from([[-1, 1], [0, 1, 2]]))
    if classes:
        params["class_weight"] = {label: CLASS_WEIGHTS[label] for label in classes}
    sparse = rng.random(WIDTH) * 1.2  # some features are rare, some have no values
    rows = []
    for _ in range(parts):
        pieces = []
        for _ in range(rounds):
            n = int(rng.integers(0, 13)) if draw(st.booleans()) else 8
            X = rng.normal(size=(n, WIDTH)) * (rng.random((n, WIDTH)) < sparse * rng.random(WIDTH))
            X = X.astype(np.float32).astype(np.float64)
            y = rng.choice(classes, n).astype(float) if classes else rng.normal(size=n)
            pieces.append((X, y))
        rows.append(pieces)
    if not any(len(y) for pieces in rows for _, y in pieces):
        rows[0][0] = (np.ones((1, WIDTH)), np.ones(1))
    return Case(rule, params, rows, draw(st.integers(1, 3)), classes)
