"""The result of training: everything that an estimator needs to predict and to train further."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.distinct import distinct_keys
from thresher.health.label_order import LabelOrder
from thresher.health.watch import DivergenceWatch
from thresher.model.frontier import Place
from thresher.model.model import Model, Output, Progress
from thresher.model.name_arrays import only
from thresher.rules import core_args
from thresher.rules.parameter import UNRECORDED
from thresher.training.hooks import Hooks
from thresher.training.learner_state import StateInMemory
from thresher.training.name_cache import NameCache
from thresher.training.outputs import Outputs
from thresher.training.outputs_factory import OutputsFactory
from thresher.training.records import LossTally
from thresher.training.refit import Refit


@dataclass
class FittedState:
    """The result of training.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    params : dict
        The parameters that the learners were built from; "auto" rates that depend on the rows are
        replaced by numbers.
    requested : dict
        The same parameters as the user set them.
    rows : int or None
        Number of rows, if a penalty depends on it.
    width : int
        Number of features; 2^64: any.
    history : list of Progress or None
        None: the model was trained together with others, without a history.
    passes : int
    outputs : Outputs or None
        The learners; None: they are not available, only `weights`.
    weights : list of Output or None
        The learned weights, if `outputs` is None.
    extras : dict
        Further attributes of the model, if `outputs` is None.
    known : pair or None
        Rows that were predicted already, with their raw predictions; not pickled.
    final : bool
        Whether training cannot continue; then the learners are lost.
    obstacle : str
        Why it cannot, as the end of a sentence; empty: it is not known.
    hooks : Hooks
    recorded : pair of float
        Sums of losses and weights at the last record.
    watch : DivergenceWatch
    order : LabelOrder or None
        The order of the labels so far.
    classes : array or None
        Labels of a classifier.
    multilabel : {"", "dense", "sparse"}
        Format of the labels, if rows have any number of them; empty: they have one.
    names : mapping or None
        Names of features of a source.
    kinds : dict or None
        The kind that was detected for each column of a table.
    reading : dict
        Options with which the source was read.
    place : Place or None
        The errors and nonzeros of all models of the search that chose this model.
    refit : Refit or None
        The weights kept by target_nnz, learned again, if they were; further training starts from
        `outputs`.
    standardised : bool
        Whether the learners have standardised targets.
    seen_names : NameCache or None
        Names of features of rows that were given as dicts.
    row_by_row : bool
        Whether `learn_one` learned the last row.
    separate : bool
        Whether each output has a learner of its own, as after training on a cluster.
    runs : int
        Number of runs of `thresher train --from` that this one continues.
    origin : str
        The checksum of the state in the model file that training goes on from; empty: none.
    """

    rule: str
    params: dict[str, Any]
    requested: dict[str, Any]
    rows: int | None
    width: int
    history: list[Progress] | None = field(default_factory=list)
    passes: int = 0
    outputs: Outputs | None = None
    weights: list[Output] | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    known: tuple[Any, NDArray[np.float64]] | None = None
    final: bool = False
    obstacle: str = ""
    hooks: Hooks = field(default_factory=Hooks)
    recorded: LossTally = (0.0, 0.0)
    watch: DivergenceWatch = field(default_factory=DivergenceWatch)
    order: LabelOrder | None = None
    classes: NDArray[Any] | None = None
    multilabel: str = ""
    names: Mapping[int, str] | None = None
    kinds: dict[str, str] | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    place: Place | None = None
    refit: Refit | None = None
    standardised: bool = False
    seen_names: NameCache | None = None
    row_by_row: bool = False
    separate: bool = False
    runs: int = 0
    origin: str = ""
    _latest: tuple[int, list[Output]] | None = None  # steps and outputs, to compute them only once

    @property
    def factory(self) -> OutputsFactory:
        """The factory of the outputs."""
        features = 0 if self.width == 2**64 else self.width  # 0: any feature number
        return OutputsFactory(
            self.rule, self.params, self.rows, features, self.width, self.standardised,
            separate=self.separate,
        )  # fmt: skip

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
    def outputs_steps(self) -> int:
        """Number of rows learned so far."""
        return 0 if self.outputs is None else self.outputs.steps

    def copied_outputs(self) -> Outputs:
        """Return an independent copy of the outputs."""
        assert self.outputs is not None
        return self.factory.restore(self.outputs.states(), len(self.outputs))

    def learned(self, keep: bool = False) -> list[Output]:
        """Return the weights and the intercept of each output; `keep`: also for the next call."""
        if self.refit is not None and self.refit.outputs is not None:
            return self.refit.outputs
        if self.weights is not None:
            return self.weights
        assert self.outputs is not None
        latest, self._latest = self._latest, None
        if latest is None or latest[0] != self.outputs.steps:
            latest = self.outputs.steps, self.outputs.outputs(self.average, self.target)
        if keep:
            self._latest = latest
        return latest[1]

    def all_extras(self) -> dict[str, Any]:
        """Return further attributes of the model."""
        if self.outputs is None:
            return self.extras
        return self.hooks.extras(self.outputs, self.params, self.classes)

    def model(
        self,
        params: Mapping[str, Any],
        outputs: list[Output] | None = None,
        names: Mapping[int, str] | None = None,
    ) -> Model:
        """Return the model.

        Parameters
        ----------
        params : mapping
            All parameters of the estimator, to be stored in the model.
        outputs : list of Output, optional
            Weights to use instead of the last ones.
        names : mapping, optional
            Names of all columns, if they have names.
        """
        learner = StateInMemory(self, params) if outputs is None else None
        extras = self.all_extras() if outputs is None else {}
        outputs = self.learned() if outputs is None else outputs
        evidence = extras.get("evidence")  # why() needs the names of all its features
        parameters = {"rule": self.rule, **params, **self.params, **self.reading}
        for name in UNRECORDED:
            parameters.pop(name, None)
        if self.multilabel:
            parameters["multilabel"] = True
        if self.kinds:
            parameters["kinds"] = json.dumps(self.kinds)
        if self.runs:
            parameters |= {"runs": self.runs + 1, "passes": self.passes}
        features = distinct_keys([evidence.features] if evidence else [o.keys for o in outputs])
        known = self._names_of(features) if names is None else names
        return Model.of(
            outputs,
            n_features=self.width,
            classes=self.classes,
            loss=core_args.loss_of(self.rule, self.params),
            parameters=parameters,
            history=tuple(self.history or ()),
            names=None if known is None else only(known, features),
            frontier=self.place,
            learner=learner,
            **extras,
        )

    def _names_of(self, features: NDArray[np.uint64]) -> Mapping[int, str] | None:
        """Return names that include those of these features, if they are known."""
        if self.seen_names is None:
            return self.names
        return {**self.seen_names.of(features), **(self.names or {})} or None

    # ---- pickling ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return the content of a pickle: states of the learners instead of the learners."""
        state = dict(vars(self), known=None, _latest=None)
        if self.final:
            state |= {"weights": self.learned(), "outputs": None}
        elif self.outputs is not None:
            state["outputs"] = len(self.outputs), self.outputs.states()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild the learners from their states."""
        vars(self).update(state, _latest=None)
        if state["outputs"] is not None:
            count, states = state["outputs"]
            self.outputs = self.factory.restore(states, count)
