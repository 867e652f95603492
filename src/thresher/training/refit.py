"""Refit: learn the weights that `target_nnz` keeps again, from the kept features alone.

The penalty that leaves few weights also shrinks them. So the rows are read once more, and lanes of
the rule learn the kept features without a penalty, and with a few smaller ones. Each candidate has
a lane for each fold of the rows, which does not see that fold, and one lane that sees all rows. The
held-out loss chooses the candidate (docs/decisions/0019-refit.md). If there are many rows, only the
first fold is held out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.matrix_source import MatrixSource
from thresher.data.row_folds import fold_numbers
from thresher.data.targets import Targets
from thresher.losses import LOSSES
from thresher.model.history import Output
from thresher.rules import RULES, core_args
from thresher.sums import dot, ordered_sum
from thresher.training.first_rows import norm_of
from thresher.training.kept_rows import KeptRows
from thresher.training.lanes import Lane, LaneTeam
from thresher.training.target_scale import TargetScale

if TYPE_CHECKING:
    from thresher.data.source import Source
    from thresher.training.plan import TrainingPlan
    from thresher.training.trainer import Trainer

FOLDS = 5
MANY = 10_000  # with this number of rows, one fold is enough to choose
SHARES = (0.0, 1e-3, 1e-2, 1e-1)  # penalties, relative to one that makes all weights zero
_MOST = 1 << 25  # values of kept features that are held in memory
_CELLS = 1 << 21  # predictions in memory at a time


@dataclass(frozen=True)
class Refit:
    """What a refit has tried, and its choice.

    Attributes
    ----------
    shares : tuple of float
        The penalties tried; 1 is about the smallest one that makes all weights zero.
    losses : tuple of float
        The held-out loss of each.
    loss_before : float
        The expected loss of the weights before the refit: their loss on the same rows, from which
        they have learned, times 1 + 2 k / n for k weights and n rows (Akaike's final prediction
        error).
    largest : tuple of float
        For each output, the penalty that 1 stands for.
    outputs : list of Output or None
        The new weights; None: the weights before the refit have the smallest loss, and stay.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import FTRLClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 50))
    >>> clf = FTRLClassifier(target_nnz=2, random_state=0).fit(X, X[:, 3] > X[:, 7])
    >>> clf.refit_.share, clf.refit_.loss < clf.refit_.loss_before
    (0.0, True)
    """

    shares: tuple[float, ...]
    losses: tuple[float, ...]
    loss_before: float
    largest: tuple[float, ...] = ()
    outputs: list[Output] | None = field(repr=False, compare=False, default=None)

    @property
    def best(self) -> int:
        """The number of the penalty with the smallest held-out loss."""
        return int(np.argmin(self.losses))

    @property
    def share(self) -> float | None:
        """The penalty that was chosen; None: the weights before the refit stay."""
        return None if self.outputs is None else self.shares[self.best]

    @property
    def penalties(self) -> list[float] | None:
        """The penalty of each output, in the unit of the rule; None as for `share`."""
        return None if self.share is None else [self.share * top for top in self.largest]

    @property
    def loss(self) -> float:
        """The loss of the weights that were chosen."""
        return self.loss_before if self.outputs is None else self.losses[self.best]

    def __str__(self) -> str:
        known = f"loss {self.loss_before:.5g} before"
        if self.outputs is None:
            return f"refit: {known}, held-out loss {min(self.losses):.5g}; the weights stay"
        return f"refit: {known}, held-out loss {self.loss:.5g} now"


def obstacle(plan: TrainingPlan, source: Source | MatrixSource) -> str:
    """Return why weights cannot be learned again; empty: they can.

    Parameters
    ----------
    plan : TrainingPlan
    source : Source or MatrixSource
    """
    if not source.rereadable:
        return f"{source} can be read only once"
    if LOSSES[plan.loss].scales_rows:
        return f"the loss {plan.loss} scales each row by all its features"
    return ""


def message_of(owner: str, why: str) -> str:
    """Return the text of the warning that weights are not learned again."""
    return (
        f"{owner}: the weights kept by target_nnz stay shrunk, and are not learned again, because "
        f"{why}; refit=False turns this message off"
    )


def refit(trainer: Trainer, kept: Sequence[Output]) -> Refit:
    """Learn the kept weights of all outputs again; the rows are read once.

    The kept features of all rows are held in memory, and learned in as many passes as before. If
    they are too many, rows are learned while they are read, in one pass.

    Parameters
    ----------
    trainer : Trainer
        After training.
    kept : sequence of Output
        The weights that the model keeps.
    """
    return _Refitter(trainer, kept).run()


class _Refitter:
    """Reads the rows once, and lets the candidates of each output learn them."""

    def __init__(self, trainer: Trainer, kept: Sequence[Output]) -> None:
        self.trainer, self.plan, self.kept = trainer, trainer.plan, kept
        self.scale = trainer.outputs.scale  # of standardised targets
        self.features = np.unique(np.concatenate([output.keys for output in kept]))
        self.candidates: list[_Candidates] = []
        self.rule, self.params = _lane_parameters(self.plan)
        self.learned = 0  # rows
        self.judged = FOLDS  # folds that are held out, the first ones

    def run(self) -> Refit:
        trainer, pieces, size, streams = self.trainer, list[KeptRows](), 0, False
        for block in trainer.source.blocks(dtype=self.plan.dtype, kinds=trainer.kinds or None):
            pieces.append(KeptRows.of_block(block, self.features, self.plan))
            size += len(pieces[-1].values)
            if size > _MOST and not isinstance(trainer.source, MatrixSource):
                streams = True
                self._learn(KeptRows.joined(pieces), 1, max(trainer.rows_of_pass, 1))
                pieces, size = [], _MOST
        if pieces:
            passes = 1 if streams else max(1, trainer.passes_kept + trainer.passes_before)
            self._learn(KeptRows.joined(pieces), passes)
        return self._chosen()

    def _learn(self, rows: KeptRows, passes: int, total: int | None = None) -> None:
        """Learn some of `total` rows; the candidates are made by the first rows."""
        if not self.candidates:
            self._standardise(rows)
        if self.scale is not None:
            values = (rows.targets[0] - self.scale.mean) / (self.scale.sd or 1.0)
            rows = replace(rows, targets=Targets.of_values(values))
        if not self.candidates:
            self.judged = 1 if (total or rows.rows) >= MANY else FOLDS
            rate = RULES[self.rule].rate_from_rows
            if core_args.waits_for_rows(self.rule, self.params, self.scale is not None):
                self.params[rate] = core_args.rate_for(
                    self.rule, self.plan.task, self.params, norm_of(rows), None
                )
            scale = passes * (1.0 if total is None else total / max(rows.rows, 1))
            for number, output in enumerate(self.kept):
                columns = np.searchsorted(self.features, output.keys)
                top = _largest_penalty(self.plan, self.rule, rows.part(columns), number, scale)
                lanes = _lanes(
                    self.rule, self.params, top, max(len(columns), 1), self.judged,
                    self.scale is not None,
                )  # fmt: skip
                one = _Candidates(self.plan, self.rule, self._scaled(output), columns, top, lanes)
                self.candidates.append(one)
        folds = fold_numbers(self.learned, rows.rows, FOLDS)
        held_out = np.flatnonzero(folds < self.judged)
        seen = np.ones((rows.rows, self.judged + 1), np.uint8)  # the last clock sees all rows
        seen[held_out, folds[held_out]] = 0
        for target, one in enumerate(self.candidates):
            part = rows.part(one.columns)
            batch = part.batch(target)
            for number in range(passes):
                one.team.learn(batch, self._order(number, rows.rows), seen=seen)
                if number + 1 < passes:
                    one.team.next_pass()
                if self.trainer.options.observer.stops():
                    self.trainer.interrupt()
            one.judge(part, batch, target, held_out, folds[held_out])
        self.learned += rows.rows

    def _standardise(self, rows: KeptRows) -> None:
        """Set the scale of targets of a rule that standardises them in the core."""
        degree = LOSSES[self.plan.loss].degree
        if self.scale is None and RULES[self.plan.rule].standardises_in_core and degree:
            centred = bool(self.plan.params.get("fit_intercept", True))
            self.scale = TargetScale.of(degree, centred, rows.targets[0], rows.weights)
            epsilon = self.plan.params.get("epsilon", "auto")
            if epsilon != "auto":  # in units of y
                self.params["epsilon"] = epsilon / (self.scale.sd or 1.0)
                own = {**self.plan.params, "epsilon": self.params["epsilon"]}
                self.plan = replace(self.plan, params=own)

    def _scaled(self, output: Output) -> Output:
        """Return weights and intercept in the units of the targets here."""
        if self.scale is None:
            return output
        sd = self.scale.sd or 1.0
        intercept = (output.intercept - self.scale.mean) / sd
        return Output(output.keys, output.weights / sd, intercept)

    def _order(self, number: int, rows: int) -> NDArray[np.int64] | None:
        """Return the order of rows in a pass: that of the fit, if the rows are a matrix."""
        plan, source = self.plan, self.trainer.source
        if isinstance(source, MatrixSource):
            return source.order(number, plan.shuffle, plan.seed)
        if plan.shuffle is False:
            return None
        return np.random.default_rng([plan.seed, self.learned, number]).permutation(rows)

    def _chosen(self) -> Refit:
        tops = tuple(one.top for one in self.candidates)
        sums = np.sum([one.losses for one in self.candidates], axis=0)
        weight = ordered_sum(one.weight for one in self.candidates)
        before = ordered_sum(one.expected_loss(self.learned) for one in self.candidates)
        if not weight > 0:
            return Refit(SHARES, (np.inf,) * len(SHARES), np.inf, tops)
        unit = 1.0 if self.scale is None else self.scale.unit
        losses = tuple(unit * float(total / weight) for total in sums)
        found = Refit(SHARES, losses, unit * before / weight, tops)
        if not losses[found.best] < found.loss_before:
            return found
        outputs = [one.output(found.best) for one in self.candidates]
        if self.scale is not None:
            outputs = [self.scale.output(output) for output in outputs]
        return replace(found, outputs=outputs)


class _Candidates:
    """The lanes of one output: for each penalty, one lane per fold and one for all rows."""

    def __init__(
        self,
        plan: TrainingPlan,
        rule: str,
        output: Output,
        columns: NDArray[np.intp],
        top: float,
        lanes: Sequence[Lane],
    ) -> None:
        self.plan, self.before, self.columns, self.top = plan, output, columns, top
        self.clocks, width = len(lanes) // len(SHARES), max(len(columns), 1)
        self.team = LaneTeam(RULES[rule].core, "dense", plan.dtype, width, lanes)
        self.losses = np.zeros(len(SHARES))  # sums over the rows
        self.loss_before = self.weight = 0.0

    def judge(
        self,
        rows: KeptRows,
        batch: _core.Batch,
        output: int,
        held_out: NDArray[np.int64],
        folds: NDArray[np.int64],
    ) -> None:
        """Add the losses of rows that are held out, with and without the refit."""
        targets = rows.targets[output][held_out]
        weights = np.ones(len(held_out)) if rows.weights is None else rows.weights[held_out]
        raw = rows.products(self.before.weights)[held_out] + self.before.intercept
        self.loss_before += self._loss(raw, targets, weights)
        self.weight += float(weights.sum())
        step = max(1, _CELLS // len(self.team))
        for first in range(0, len(held_out), step):
            at = slice(first, first + step)
            found = self.team.predict(batch, order=held_out[at], finite=False)
            for number in range(len(SHARES)):
                own = found[np.arange(len(found)), number * self.clocks + folds[at]]
                self.losses[number] += self._loss(own, targets[at], weights[at])
        for lane, message in enumerate(self.team.divergences):
            if message:
                self.losses[lane // self.clocks] = np.inf

    def expected_loss(self, rows: int) -> float:
        """Return the sum of losses before the refit, corrected for learning from these rows."""
        return self.loss_before + abs(self.loss_before) * 2 * len(self.columns) / rows

    def _loss(
        self,
        raw: NDArray[np.float64],
        targets: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> float:
        """Return the weighted sum of losses; inf if a prediction is not finite."""
        if not np.isfinite(raw).all():
            return np.inf
        return dot(self.plan.losses(np.ascontiguousarray(raw), targets), weights)

    def output(self, number: int) -> Output:
        """Return the weights that were learned from all rows with a penalty."""
        lane = (number + 1) * self.clocks - 1
        columns, weights = self.team.weights(lane)
        intercept = float(self.team.intercepts()[lane])
        return Output(self.before.keys[columns.astype(np.intp)], weights, intercept)


def _lane_parameters(plan: TrainingPlan) -> tuple[str, dict[str, Any]]:
    """Return the rule that learns kept weights again, and its parameters."""
    rule = RULES[plan.rule].refit_rule
    params = dict(plan.params)
    if rule != plan.rule:  # what both have is the same, and the rest has its default
        spec = RULES[rule]
        own = {*spec.own, *RULES[plan.rule].own}
        table = {name: p.default_for(plan.task) for name, p in spec.parameters.items()}
        params = table | {k: v for k, v in params.items() if k in table and k not in own}
        params |= {spec.rate_from_rows: "auto"} if spec.rate_from_rows else {}
    params["target_nnz"] = None
    return rule, params | ({"certify": False} if "certify" in params else {})


def _lanes(
    rule: str, params: Mapping[str, Any], top: float, width: int, judged: int, standardised: bool
) -> list[Lane]:
    """Return the lanes of an output, penalty by penalty."""
    penalty = RULES[rule].penalty
    assert penalty is not None
    found = []
    for share in SHARES:
        own = {**params, penalty: share * top}
        numbers, words = core_args.core_parameters(rule, own, None, width, standardised)
        found += [Lane(numbers, words, clock) for clock in range(judged + 1)]
    return found


def _largest_penalty(
    plan: TrainingPlan, rule: str, rows: KeptRows, output: int, scale: float
) -> float:
    """Return about the smallest penalty that makes all weights of an output zero.

    `scale` is the number of times that a row, or one like it, is learned.
    """
    numbers, words = plan.factory(1).parameters()
    loss = words["loss"], numbers["epsilon"], numbers["quantile"]
    targets = rows.targets[output]
    slopes = np.array(_core.loss_values(*loss, np.zeros(rows.rows), targets)[1])
    weights = np.ones(rows.rows) if rows.weights is None else rows.weights
    total = float(weights.sum())
    if not total > 0:
        return 0.0
    if plan.params.get("fit_intercept", True):
        slopes -= dot(slopes, weights) / total
    largest = float(np.abs(rows.sums(slopes * weights)).max(initial=0.0))
    spec = RULES[rule]
    unit = scale if spec.penalty_unit == "gradients" else spec.penalty_reach / total
    top = largest * unit
    return min(top, 1e29) if top > 0 else 0.0  # 0 also for NaN
