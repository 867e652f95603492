"""Every rule and every parameter, once: defaults, ranges, the paper's symbol, a line of help.

The estimators take their checks and documentation from this table, and so do the command line and
the search. It imports nothing heavy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from thresher.errors import ParameterError
from thresher.parameters import (
    AUTO_ETA,
    AUTO_ETA_ELSE,
    AUTO_GRAVITY,
    AUTO_STRENGTH,
    AUTO_STRENGTH_ELSE,
    CLASSIFIER_LOSSES,
    COMMON,
    L2,
    RATE,
    REGRESSOR_LOSSES,
    Parameter,
    Task,
    loss_parameter,
)


@dataclass(frozen=True)
class Rule:
    """A learning rule: its name in the core, its parameters, and what else the core is told.

    Parameters
    ----------
    core : str
        Its name in the core.
    paper : str
        Where it was published.
    own : mapping
        Its own parameters.
    fixed : mapping
        What the core is told besides.
    regressor_loss : str
        The regressor's default loss.
    losses : tuple of str
        The losses it takes; a rule with a single loss has no such parameter.
    without : tuple of str
        Common parameters that have no meaning for it.
    """

    core: str
    paper: str
    own: Mapping[str, Parameter]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    regressor_loss: str = "squared"
    losses: tuple[str, ...] = tuple(dict.fromkeys(CLASSIFIER_LOSSES + REGRESSOR_LOSSES))
    without: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters, in the order of the estimators' signatures."""
        loss = (
            {"loss": loss_parameter(self.losses, self.regressor_loss)}
            if len(self.losses) > 1
            else {}
        )
        common = {name: p for name, p in COMMON.items() if name not in self.without}
        return {**loss, **self.own, **common}

    def losses_for(self, task: Task) -> tuple[str, ...]:
        """Return the losses that a classifier or a regressor of this rule may have."""
        fitting = CLASSIFIER_LOSSES if task == "classifier" else REGRESSOR_LOSSES
        return tuple(loss for loss in fitting if loss in self.losses)


RULES: dict[str, Rule] = {
    "truncated-gradient": Rule(
        core="truncated_gradient",
        paper="Langford, Li, Zhang: Sparse Online Learning via Truncated Gradient (NIPS 2008)",
        own={
            "gravity": Parameter(
                "Pull towards zero, in units of the objective: a step of rate eta shrinks by eta * "
                "gravity. 0 is plain SGD. 'auto' is 0.02 over the number of rows; in partial_fit, "
                "which cannot know it, 0.02 over the rows so far.",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="g",
            ),
            "period": Parameter(
                "Steps between truncations, each `period` times as hard.",
                10,
                kind="integer",
                low=1,
                high=2**31,
                symbol="K",
            ),
            "ceiling": Parameter(
                "Weights above it are not pulled; with shrink='round', weights below become zero.",
                math.inf,
                low=0.0,
                symbol="theta",
            ),
            "shrink": Parameter(
                "'truncate' pulls to zero and stops there, 'round' sets weights below the ceiling "
                "to zero (gravity is not used), 'subgradient' pulls by the sign and does not stop "
                "at zero.",
                "truncate",
                kind="choice",
                choices=("truncate", "round", "subgradient"),
            ),
            "average": Parameter(
                "Predict with the mean of the weights after each step, exact under truncation.",
                False,
                kind="flag",
            ),
            "l2": L2,
            **RATE,
            "certify": Parameter(
                "Keep the sums of the regret certificate; costs speed. It is given for "
                "shrink='truncate' without ceiling, l2 and average, with a number eta0, "
                "schedule='constant' and decay=1.",
                False,
                kind="flag",
            ),
        },
    ),
    "averaged-sgd": Rule(
        core="averaged_sgd",
        paper="Dekel: Linear Learning with Sparse Data (2017)",
        own={
            "alpha": Parameter(
                "Regularisation: alpha/2 (||w||^2 + b^2); the step is 1/(alpha t).",
                1e-4,
                low=0.0,
                open_low=True,
                high=1e30,
                symbol="lambda",
            ),
            "average": Parameter(
                "Predict with the mean of the weights after each step; False: with the last.",
                True,
                kind="flag",
            ),
            "center": Parameter(
                "Centre the rows by their mean, without ever making them dense.", False, kind="flag"
            ),
        },
        regressor_loss="huber",  # with squared, steps of 1/(alpha t) explode
    ),
    "forward-backward": Rule(
        core="truncated_gradient",
        paper="Duchi, Singer: Efficient Online and Batch Learning using Forward Backward Splitting "
        "(JMLR 2009)",
        own={
            "l1": Parameter(
                "Lasso penalty, in units of the objective: mean loss + l1 ||w||_1. 'auto' is 0.02 "
                "over the number of rows; in partial_fit, which cannot know it, 0.02 over the "
                "rows so far.",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="lambda",
            ),
            "l2": L2,
            **RATE,
        },
        fixed={"period": 1, "ceiling": math.inf, "shrink": "truncate", "average": False},
    ),
    "ftrl": Rule(
        core="ftrl",
        paper="McMahan et al.: Ad Click Prediction: a View from the Trenches (KDD 2013)",
        own={
            "l1": Parameter(
                "Lasso penalty, as published: it acts on the summed gradient, and does not grow "
                "with the number of rows.",
                0.3,
                low=0.0,
                high=1e30,
                symbol="lambda_1",
            ),
            "l2": Parameter("Ridge penalty, as published.", 0.0, low=0.0, high=1e30),
            "alpha": Parameter("Learning rate of a coordinate.", 1.0, low=1e-30, high=1e30),
            "beta": Parameter("Slows the first steps of a coordinate.", 1.0, low=0.0, high=1e30),
        },
    ),
    "dual-averaging": Rule(
        core="dual_averaging",
        paper="Xiao: Dual Averaging Methods for Regularized Stochastic Learning and Online "
        "Optimization (JMLR 2010)",
        own={
            "l1": Parameter(
                "Lasso penalty, in units of the objective: mean loss + l1 ||w||_1. 'auto' is 0.02 "
                "over the number of rows; in partial_fit, which cannot know it, 0.02 over the "
                "rows so far.",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="lambda",
            ),
            "strength": Parameter(
                "Pull of the proximal term towards 0: after t steps weights are 1 / (strength "
                "sqrt(t)) times the truncated sum of gradients. 'auto' is relative to the rows: "
                "the curvature of the loss, for logistic and losses without one a tenth of it, "
                "times the mean of their squared norms.",
                "auto",
                low=1e-30,
                high=1e30,
                choices=("auto",),
                symbol="gamma",
            ),
            "boost": Parameter(
                "Adds strength * boost / sqrt(t) to l1: sparser beginnings.",
                0.0,
                low=0.0,
                high=1e30,
                symbol="rho",
            ),
        },
    ),
    "margin-perceptron": Rule(
        core="margin_perceptron",
        paper="Chen et al.: Efficient and Numerically Stable Sparse Learning (ECML 2010)",
        losses=("margin",),
        own={
            "margin": Parameter(
                "Rows with y w.x at or below it are learned from.",
                1.0,
                low=0.0,
                high=1e30,
                symbol="tau",
            ),
            "l1": Parameter(
                "What each update takes from the weights it touches, absolute: it is not "
                "multiplied by eta0.",
                1e-3,
                low=0.0,
                high=1e30,
                symbol="lambda",
            ),
            "eta0": Parameter(
                "Size of an update; margin and l1 are relative to it.",
                1.0,
                low=0.0,
                open_low=True,
                high=1e30,
                symbol="eta",
            ),
            "shrink": Parameter(
                "'touched': an update shrinks the weights of its row alone, as published; 'all': "
                "it shrinks every weight, so that l1 governs how many stay.",
                "touched",
                kind="choice",
                choices=("touched", "all"),
            ),
            "max_density": Parameter(
                "Stop learning when this share of the weights is not zero. None: no limit.",
                None,
                low=0.0,
                open_low=True,
                high=1.0,
                optional=True,
                symbol="s",
            ),
            "levels": Parameter(
                "Shares of nonzero weights, increasing; the model at the moment each is reached is "
                "kept in level_models_.",
                (),
                kind="object",
            ),
        },
        without=("epsilon", "quantile"),
    ),
    "mirror-descent": Rule(
        core="mirror_descent",
        paper="Shalev-Shwartz, Tewari: Stochastic Methods for l1 Regularized Loss Minimization "
        "(ICML 2009): SMIDAS",
        own={
            "l1": Parameter(
                "What each step takes from every coordinate of the dual vector; see threshold.",
                1e-5,
                low=0.0,
                high=1e30,
                symbol="lambda",
            ),
            "threshold": Parameter(
                "'paper': each step takes l1; 'scaled': it takes eta * l1, so that l1 is in units "
                "of the objective.",
                "paper",
                kind="choice",
                choices=("paper", "scaled"),
            ),
            "p": Parameter(
                "Norm of the link between dual vector and weights. '2ln' is 2 ln(features), "
                "'0.5ln' a quarter of it; both at least 2. 2 is plain truncated gradient.",
                "0.5ln",
                low=2.0,
                high=1e4,
                choices=("2ln", "0.5ln"),
                symbol="p",
            ),
            **RATE,
        },
        without=("store", "dtype"),
    ),
    "coordinate-descent": Rule(
        core="coordinate_descent",
        paper="Shalev-Shwartz, Tewari: Stochastic Methods for l1 Regularized Loss Minimization "
        "(ICML 2009): SCD",
        losses=("logistic", "squared_hinge", "squared", "square", "huber"),
        own={
            "l1": Parameter(
                "Lasso penalty, in units of the objective: mean loss + l1 ||w||_1. 'auto' is 0.5 "
                "over the number of rows.",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="lambda",
            ),
            "step": Parameter(
                "'coordinate': the step of a coordinate is 1 / (beta mean(x_j^2)), beta the "
                "curvature of the loss; 'global': 1 / beta, as published, for features in [-1, 1].",
                "coordinate",
                kind="choice",
                choices=("coordinate", "global"),
            ),
        },
        without=("quantile", "shuffle", "store", "dtype", "patience", "warm_start"),
    ),
    "hard-threshold": Rule(
        core="hard_threshold",
        paper="Garg, Khandekar: Gradient Descent with Sparsification (ICML 2009): GraDes",
        losses=("squared",),
        own={
            "n_nonzero": Parameter(
                "Weights kept after each iteration. None: a tenth of the features.",
                None,
                kind="integer",
                low=1,
                high=2**53,
                optional=True,
                symbol="s",
            ),
            "step": Parameter(
                "Step of an iteration. 'safe' is 1 over the largest eigenvalue of X'X: the "
                "residual never grows.",
                "safe",
                low=0.0,
                open_low=True,
                high=1e30,
                choices=("safe",),
                symbol="1/gamma",
            ),
        },
        without=(
            "epsilon",
            "quantile",
            "shuffle",
            "store",
            "dtype",
            "patience",
            "class_weight",
            "warm_start",
            "random_state",
        ),
    ),
}


def check(rule: str, task: Task, params: Mapping[str, Any], owner: str) -> None:
    """Raise ParameterError for the first parameter, or pair of them, that is not allowed.

    Parameters
    ----------
    rule : str
        A key of ``RULES``.
    task : {"classifier", "regressor"}
        Decides which losses fit.
    params : mapping
        Values by name.
    owner : str
        Whose parameters they are, for the message.
    """
    table = RULES[rule].parameters
    for name, value in params.items():
        if name not in table:
            raise ParameterError(f"{owner} has no parameter {name!r}; it has {', '.join(table)}")
        if not table[name].accepts(value):
            raise ParameterError(f"{owner}: {name} must be {table[name].allowed()}; got {value!r}")
    losses = RULES[rule].losses_for(task)
    if "loss" in params and params["loss"] not in losses:
        raise ParameterError(
            f"{owner}: loss {params['loss']!r} is not one for a {task}; "
            f"allowed are {', '.join(losses)}"
        )
    if params.get("shrink") == "round" and math.isinf(params["ceiling"]):
        raise ParameterError(f"{owner}: shrink='round' needs a finite ceiling")
    if rule == "averaged-sgd" and params["loss"] == "poisson":
        raise ParameterError(
            f"{owner}: steps of 1/(alpha t) explode with loss 'poisson', whose slope has no bound; "
            f"FTRL and truncated gradient take it"
        )
    levels = params.get("levels", ())
    if not isinstance(levels, tuple | list) or not all(
        isinstance(level, int | float) and 0 < level <= 1 for level in levels
    ):
        raise ParameterError(
            f"{owner}: levels must be a tuple of shares above 0 and up to 1; got {levels!r}"
        )
    if rule == "margin-perceptron" and params["shrink"] == "all":
        for name in ("max_density", "levels"):
            if params[name] not in (None, (), []):
                raise ParameterError(
                    f"{owner}: {name} does not go with shrink='all': which of the untouched "
                    f"weights are zero is known only when they are counted"
                )
    if params.get("center") and params["loss"] == "clipped_square":
        raise ParameterError(
            f"{owner}: center=True does not go with clipped_square, which scales each row by itself"
        )
    if params.get("callback") is not None and not callable(params["callback"]):
        raise ParameterError(f"{owner}: callback must be callable or None")


def learner_parameters(rule: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return those parameters that make a learner, and cannot change while it lives."""
    names = ("loss", "epsilon", "quantile", "fit_intercept", "store", "dtype", *RULES[rule].own)
    return {name: params[name] for name in names if name in params}


def core_parameters(
    rule: str, params: Mapping[str, Any], rows: int | None
) -> tuple[dict[str, float], dict[str, str]]:
    """Split what the core is told into numbers (flags as 0 and 1) and words, by name.

    `rows` is the number of rows, or None where it is not known beforehand.
    """
    spec = RULES[rule]
    values: dict[str, Any] = {"loss": spec.losses[0], "epsilon": 0.0, "quantile": 0.5}
    values |= {name: params[name] for name in (*values, "fit_intercept") if name in params}
    values |= {name: params[name] for name in spec.own} | dict(spec.fixed)
    if rule == "forward-backward":
        values["gravity"] = values.pop("l1")
    if rule == "margin-perceptron":
        values["epsilon"] = values.pop("margin")
    for name in ("gravity", "l1"):
        if name in values:
            values["fading"] = values[name] == "auto" and rows is None
            if values[name] == "auto":
                values[name] = AUTO_GRAVITY / (rows or 1)
    for name, auto in (
        ("eta0", AUTO_ETA.get(values["loss"], AUTO_ETA_ELSE)),
        ("strength", AUTO_STRENGTH.get(values["loss"], AUTO_STRENGTH_ELSE)),
    ):
        if name in values:
            values["relative"] = values[name] == "auto"
            if values["relative"]:
                values[name] = auto
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    told = {
        name: float(value)
        for name, value in values.items()
        if name not in words and name not in ("levels", "max_density")  # Python's own
    }
    return told, words
