"""The decisions that `fit` makes for the user: store, width, labels, class weights, rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.labels import (
    ArrivingClasses,
    Labels,
)
from thresher.data.matrix_source import MatrixSource
from thresher.data.targets import Targets
from thresher.errors import OutOfMemoryError, ParameterError, ReadOnceError, setting
from thresher.losses import Task
from thresher.rules import RULES, core_args
from thresher.training.bank import lanes_for
from thresher.training.class_weights import class_factors, row_weights, steps_in
from thresher.training.first_rows import norm_of
from thresher.training.outputs import Outputs
from thresher.training.outputs_factory import OutputsFactory
from thresher.training.shared_outputs import SparseOutputs
from thresher.training.source_labels import labels_for
from thresher.training.target_scale import KnownScale

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.source import Source


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that decides the result of training, except the rows.

    Attributes
    ----------
    rule : str
        A key of ``RULES``, of a rule that learns row by row.
    task : {"classifier", "regressor"}
    params : mapping
        All parameters of the estimator, checked. "auto" is replaced for the store, and for the
        rate after the first rows.
    labels : Labels
        Converts labels to targets of the outputs.
    width : int
        Number of features; 0: any 64-bit key.
    grows : bool
        Whether features at or above `width` may occur; a dense store then grows.
    rows : int or None
        Number of steps in a pass, if it is known and a penalty depends on it: the number of rows,
        or more or less if rows have weights.
    passes : int
    shuffle : str or bool
    seed : int
        Seed of the shuffling.
    tol : float or None
    patience : int
    in_memory : bool
        Whether all rows are in memory.
    owner : str
        The estimator or function that trains, for messages.
    standardised : bool
        Whether the targets are standardised; see `core_args.standardises`.
    known_scale : tuple or None
        Weight, mean and sd of all targets, if they are known before training.
    """

    rule: str
    task: Task
    params: Mapping[str, Any]
    labels: Labels
    width: int
    grows: bool
    rows: int | None = None
    passes: int = 1
    shuffle: str | bool = False
    seed: int = 0
    tol: float | None = None
    patience: int = 5
    in_memory: bool = False
    owner: str = ""
    standardised: bool = False
    known_scale: KnownScale | None = None

    @classmethod
    def resolve(
        cls,
        rule: str,
        task: Task,
        params: Mapping[str, Any],
        source: Source | MatrixSource,
        *,
        owner: str,
        classes: Any = None,
        known: Labels | None = None,
        width: int | None = None,
        seed: int = 0,
        once: bool = False,
        standardised: bool | None = None,
    ) -> TrainingPlan:
        """Decide the store, the width, the labels and the weights of classes for a source.

        Parameters
        ----------
        rule, task, params
            As the attributes; ``store="auto"`` is replaced here.
        source : Source or MatrixSource
        owner : str
            The estimator or function that has the parameters, for messages.
        classes : array, "binary" or "arriving", optional
            The labels; "binary": they are -1 and 1, or 0 and 1; "arriving": each is added when it
            first occurs. None: the source is read to find them.
        known : Labels, optional
            The labels, if they are known from rows that were read before.
        width : int, optional
            The number of features, if it is known from rows that were read before.
        seed : int
        once : bool
            Whether rows are learned once, without passes, as in `partial_fit`.
        standardised : bool, optional
            Whether the targets are standardised, if rows that were read before decide it.
        """
        params = dict(params)
        if standardised is None:
            standardised = core_args.standardises(rule, task, params)
        framed = bool(source.columns) and params.get("store") == "dense"
        if params.get("store") == "auto" or framed:
            params["store"] = "hashed" if source.named and source.bits is None else "dense"
        if not once and params["passes"] > 1 and not source.rereadable:
            raise ReadOnceError(
                f"more than one pass over {source}, which can be read only once, needs a cache "
                f"made from it",
                source=str(source),
                owner=owner,
                parameter="passes",
                value=params["passes"],
                hint="`thresher convert` and thresher.data.writing.write make one",
            )
        if source.multilabel and params.get("class_weight") is not None:
            raise ParameterError(
                (setting("class_weight"), " needs rows with one class each, and these have lists "
                 "of labels"),
                owner=owner,
                parameter="class_weight",
            )  # fmt: skip
        loss = core_args.loss_of(rule, params)
        labels = known
        if labels is None:
            labels = labels_for(rule, task, loss, params, source, owner, classes)
        grows = False
        if width is None:
            width, grows = _width(rule, params, source, owner)
        if params.get("lanes") == "auto":
            params["lanes"] = lanes_for(params, labels.outputs, 0 if width == 2**64 else width)
        plan = cls(
            rule=rule,
            task=task,
            params=params,
            labels=labels,
            width=width,
            grows=grows,
            rows=None if once else source.rows,
            passes=1 if once else params["passes"],
            shuffle=False if once else params["shuffle"],
            seed=seed,
            tol=None if once else params.get("tol"),
            patience=params.get("patience", 5),
            in_memory=isinstance(source, MatrixSource),
            owner=owner,
            standardised=standardised,
        )
        counted = plan.store == "nonzero" or params.get("class_weight") == "balanced"
        if counted and isinstance(source, MatrixSource) and not once:
            labels.count(source.block)
        factors = plan.class_factors()  # raises an error for bad class weights
        if once or not isinstance(source, MatrixSource):
            return plan
        weights = source.block.weights
        if factors is not None:
            weights = row_weights(source.block, labels.targets(source.block), factors)
        if weights is not None and source.only is not None:
            weights = weights[source.only]
        return replace(plan, rows=steps_in(weights, source.rows or 0))

    # ---- values derived from the parameters ----------------------------------------------------

    @property
    def learner_params(self) -> dict[str, Any]:
        """The parameters that a learner is built from; they cannot change afterwards."""
        return core_args.learner_parameters(self.rule, self.params)

    @property
    def loss(self) -> str:
        """Name of the loss."""
        return core_args.loss_of(self.rule, self.params)

    @property
    def average(self) -> bool:
        """Whether the model is the mean of the weights over all steps."""
        return bool(self.params.get("average", False))

    @property
    def target(self) -> int | None:
        """Largest number of nonzero weights per output; None: no limit."""
        target: int | None = self.params.get("target_nnz")
        return target

    @property
    def refits(self) -> bool:
        """Whether the weights kept by target_nnz are learned again after the last pass."""
        able = bool(RULES[self.rule].refit_rule) and self.target is not None
        return able and bool(self.params.get("refit"))

    @property
    def store(self) -> str:
        """The kind of store for the weights."""
        return str(self.params.get("store", "dense"))

    @property
    def dtype(self) -> str:
        """Number type of the weights."""
        return str(self.params.get("dtype", "float64"))

    def class_factors(self) -> NDArray[np.float64] | None:
        """Return the factor of each class for the weights of its rows; None: all are 1."""
        weights, strict = self.params.get("class_weight"), not self.in_memory
        return class_factors(weights, self.labels, self.owner, strict)

    @property
    def waits_for_rows(self) -> bool:
        """Whether the rate is computed from the first rows."""
        return core_args.waits_for_rows(self.rule, self.params, self.standardised)

    def rate_for(self, block: Block) -> float:
        """Return the rate that suits the first rows."""
        steps = self.rows * self.passes if self.rows else None
        return core_args.rate_for(self.rule, self.task, self.params, norm_of(block), steps)

    def with_rate(self, alpha: float) -> TrainingPlan:
        """Return the plan with a rate computed from the first rows."""
        return replace(self, params={**self.params, RULES[self.rule].rate_from_rows: alpha})

    def factory(self, features: int) -> OutputsFactory:
        """Return a factory of outputs whose store can hold this number of features."""
        plan = self.with_rate(1.0) if self.waits_for_rows else self
        return OutputsFactory(
            self.rule, plan.params, self.rows, features, max(self.width, 1), self.standardised,
            self.known_scale,
        )  # fmt: skip

    def make(self, features: int) -> Outputs:
        """Make the outputs; their store can hold this number of features."""
        try:
            made = self.factory(features).make(
                self.labels.outputs, grows=isinstance(self.labels, ArrivingClasses)
            )
        except MemoryError:
            raise OutOfMemoryError(
                f"not enough memory for {self.labels.outputs} x {features} weights in a dense "
                f"store",
                hint=(setting("store", "hashed"), " needs memory only for the features seen"),
            ) from None
        if isinstance(made, SparseOutputs) and self.labels.counted is not None:
            made.plant(*self.labels.counted)
        return made

    def losses(
        self, predictions: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the losses at raw predictions; both are standardised, if targets are."""
        numbers, words = self.factory(1).parameters()
        loss = words["loss"], numbers["epsilon"], numbers["quantile"]
        return _core.loss_values(*loss, predictions, labels)[0]

    def zero_loss(
        self, targets: Targets, weights: NDArray[np.float64] | None
    ) -> tuple[float, float]:
        """Return the mean loss of predicting zero on these rows, and their total weight.

        If targets are standardised, it is the loss of predicting their mean, or 0 without an
        intercept.
        """
        weight = float(targets.rows if weights is None else weights.sum())
        if not self.standardised:
            return targets.zero_loss(self.losses, weights), weight
        scale = self.factory(1).scale()
        assert scale is not None
        if self.known_scale is None:
            scale.standardise(targets[0], weights)
            scale.fixed = True
        y = Targets.of_values(scale.standardise(targets[0], weights).labels.ravel())
        return scale.unit * y.zero_loss(self.losses, weights), weight


# ---- width and rate ------------------------------------------------------------------------------


def _width(
    rule: str, params: Mapping[str, Any], source: Source | MatrixSource, owner: str
) -> tuple[int, bool]:
    """Return the number of features (0: any), and whether there may be more."""
    if isinstance(source, MatrixSource):
        return source.width(), False
    hashed = params.get("store", "dense") != "dense"
    if source.named and source.bits is None and not hashed:
        if "store" not in params:
            raise ParameterError(
                ("features with names need ", setting("bits", call="scan"), " to number them"),
                owner=owner,
                parameter="bits",
            )
        raise ParameterError(
            ("features with names need ", setting("store", "hashed"), ", or ",
             setting("bits", call="scan"), " to number them"),
            owner=owner,
            parameter="store",
            value=params.get("store", "dense"),
        )  # fmt: skip
    if source.bits is not None:
        return 1 << source.bits, False
    dense = params.get("max_density") is not None or params.get("levels")
    if RULES[rule].needs_width or dense:
        if not source.rereadable:
            raise ReadOnceError(
                (f"needs the number of features before training, and {source} can be read only "
                 "once: give ", setting("bits", call="scan")),
                source=str(source),
                owner=owner,
                parameter="bits",
            )  # fmt: skip
        width = source.width()
        if width == 2**64:
            raise ParameterError(
                ("needs ", setting("bits", call="scan"), " if features have names"),
                owner=owner,
                parameter="bits",
            )
        return width, False
    return (0, not source.named) if hashed else (1, True)
