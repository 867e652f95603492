"""What fitting leaves behind: all that an estimator needs to predict, to explain, and to go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.health.watch import DivergenceWatch
from thresher.model.frontier import Place
from thresher.model.model import Model, Output, Progress
from thresher.rules import core_args
from thresher.training.hooks import Hooks
from thresher.training.outputs import Outputs
from thresher.training.outputs_factory import Recipe
from thresher.training.records import Tally


@dataclass
class FittedState:
    """What fitting leaves behind.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    params : dict
        The parameters that made the learners, as rows have decided those that were "auto".
    requested : dict
        The same, as the user set them.
    rows : int or None
        Number of rows, where it decided a penalty.
    width : int
        Number of features; 2^64: any.
    history : list of Progress or None
        None: it learned as one of many models, which keep none.
    passes : int
    outputs : Outputs or None
        What learned, and can go on; None: it learned elsewhere.
    weights : list of Output or None
        What was learned, where `outputs` is None.
    extras : dict
        What else the model says of itself, where `outputs` is None.
    known : pair or None
        Rows that were predicted already, and their raw predictions; no pickle has them.
    final : bool
        Whether it cannot go on learning: it was learned on a cluster, or in a search.
    hooks : Hooks
    recorded : pair of float
        Sums of losses and weights at the last record.
    watch : DivergenceWatch
    classes : array or None
        Labels of a classifier.
    multilabel : {"", "dense", "sparse"}
        How labels came, where rows have any number of them.
    names : dict or None
        Names of features of a source.
    kinds : dict or None
        What columns of tables were taken for.
    reading : dict
        How the rows of a source were read.
    place : Place or None
        Its place among the models of the search that chose it.
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
    hooks: Hooks = field(default_factory=Hooks)
    recorded: Tally = (0.0, 0.0)
    watch: DivergenceWatch = field(default_factory=DivergenceWatch)
    classes: NDArray[Any] | None = None
    multilabel: str = ""
    names: dict[int, str] | None = None
    kinds: dict[str, str] | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    place: Place | None = None

    @property
    def recipe(self) -> Recipe:
        """What the outputs are made of."""
        room = 0 if self.width == 2**64 else self.width  # 0: any feature number
        return Recipe(self.rule, self.params, self.rows, room, self.width)

    @property
    def average(self) -> bool:
        """Whether the model is the mean of the weights after each step."""
        return bool(self.params.get("average", False))

    @property
    def target(self) -> int | None:
        """Weights that each output keeps at most."""
        target: int | None = self.params.get("target_nnz")
        return target

    @property
    def outputs_steps(self) -> int:
        """Rows learned so far."""
        return 0 if self.outputs is None else self.outputs.steps

    def copied_outputs(self) -> Outputs:
        """Return a copy of the outputs, which learns without changing these."""
        assert self.outputs is not None
        return self.recipe.restore(self.outputs.states(), len(self.outputs))

    def learned(self) -> list[Output]:
        """Return what each output has learned."""
        if self.weights is not None:
            return self.weights
        assert self.outputs is not None
        return self.outputs.outputs(self.average, self.target)

    def all_extras(self) -> dict[str, Any]:
        """Return what else the model says of itself."""
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
            All parameters of the estimator, as the model tells them.
        outputs : list of Output, optional
            Others than those learned last.
        names : mapping, optional
            Names of all columns, where these have any.
        """
        extras = self.all_extras() if outputs is None else {}
        outputs = self.learned() if outputs is None else outputs
        evidence = extras.get("evidence")  # why() may be asked of all features it has
        keys = evidence.features if evidence else np.concatenate([o.keys for o in outputs])
        parameters = {"rule": self.rule, **params, **self.params, **self.reading}
        if self.multilabel:
            parameters["multilabel"] = True
        if self.kinds:
            parameters["kinds"] = json.dumps(self.kinds)
        known = self.names if names is None else names
        features = np.unique(keys).tolist()
        return Model.of(
            outputs,
            n_features=self.width,
            classes=self.classes,
            loss=core_args.loss_of(self.rule, self.params),
            parameters=parameters,
            history=tuple(self.history or ()),
            names=None if known is None else {f: known[f] for f in features if f in known},
            frontier=self.place,
            **extras,
        )

    # ---- pickling ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: the states of the learners instead of them."""
        state = dict(vars(self), known=None)
        if self.final:
            state |= {"weights": self.learned(), "outputs": None}
        elif self.outputs is not None:
            state["outputs"] = len(self.outputs), self.outputs.states()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the learners again."""
        vars(self).update(state)
        if state["outputs"] is not None:
            count, states = state["outputs"]
            self.outputs = self.recipe.restore(states, count)
