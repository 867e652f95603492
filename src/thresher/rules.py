"""Every rule and every parameter, once: defaults, ranges, the paper's symbol, a line of help.

The estimators take their checks and documentation from this table, and so do the command line and
the search. It imports nothing heavy.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from thresher.errors import ParameterError

CLASSIFIER_LOSSES = ("logistic", "hinge", "squared_hinge", "squared", "square", "clipped_square")
REGRESSOR_LOSSES = (
    "squared",
    "square",
    "absolute",
    "huber",
    "epsilon_insensitive",
    "quantile",
    "poisson",
    "clipped_square",
)
Task = Literal["classifier", "regressor"]


@dataclass(frozen=True)
class Parameter:
    """One parameter: what it may be, and what it means.

    Parameters
    ----------
    help : str
        What it does, as documentation and ``--help`` show it.
    default : object
        The default of both estimators, unless ``regressor_default`` is given.
    kind : {"number", "integer", "flag", "choice", "object"}
        How a value is checked.
    low, high : float
        Bounds of a number; ``open_low`` leaves the lower bound out.
    choices : tuple
        The values of a choice; words that a number may be instead.
    optional : bool
        Whether None is allowed.
    symbol : str
        What the paper calls it.
    """

    help: str
    default: Any
    kind: Literal["number", "integer", "flag", "choice", "object"] = "number"
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    choices: tuple[Any, ...] = ()
    optional: bool = False
    symbol: str = ""
    regressor_default: Any = None

    def default_for(self, task: Task) -> Any:
        """Return the default of the classifier or the regressor."""
        if task == "regressor" and self.regressor_default is not None:
            return self.regressor_default
        return self.default

    def allowed(self) -> str:
        """Say what is allowed, in words."""
        words = {
            "flag": "True or False",
            "choice": "one of " + ", ".join(repr(choice) for choice in self.choices),
            "object": "as documented",
        }.get(self.kind, "")
        if self.kind in ("number", "integer"):
            words = "a whole number" if self.kind == "integer" else "a number"
            if self.low > -math.inf:
                words += f" {'>' if self.open_low else '>='} {self.low:g}"
            if self.high < math.inf:
                words += f"{' and' if self.low > -math.inf else ''} <= {self.high:g}"
            words += "".join(f", or {choice!r}" for choice in self.choices)
        return words + (", or None" if self.optional else "")

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is allowed."""
        if value is None:
            return self.optional
        if self.kind == "object":
            return True
        if self.kind == "flag":
            return isinstance(value, bool) or type(value).__name__ == "bool"
        if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            value = value.item()
        if any(type(value) is type(choice) and value == choice for choice in self.choices):
            return True
        if self.kind == "choice":
            return False
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return False
        if self.kind == "integer" and not isinstance(value, numbers.Integral):
            return False
        number: Any = value  # compared as it is: a float would overflow on huge integers
        return bool(self.low <= number <= self.high and not (self.open_low and number == self.low))


COMMON: dict[str, Parameter] = {
    "epsilon": Parameter(
        "Where huber turns linear, and the width of the epsilon_insensitive tube.",
        0.1,
        low=0.0,
        high=1e100,
    ),
    "quantile": Parameter("The quantile the quantile loss estimates.", 0.5, low=0.0, high=1.0),
    "passes": Parameter("Passes over the data.", 20, kind="integer", low=1, high=2**31),
    "shuffle": Parameter(
        "Order of the rows: 'each' a new permutation each pass, 'once' one permutation for all, "
        "'replace' drawn with replacement, 'blocks' blocks of 2000 rows permuted, and rows within "
        "them (close to natural order in speed), False as they lie.",
        "each",
        kind="choice",
        choices=("each", "once", "replace", "blocks", False),
    ),
    "fit_intercept": Parameter("Learn an intercept.", True, kind="flag"),
    "store": Parameter(
        "Where weights live: 'dense', an array of all features, or 'hashed', a table. The table "
        "follows the nonzero weights of rules that drop dead ones (truncated gradient and "
        "forward-backward without averages); for the others it holds the features seen.",
        "dense",
        kind="choice",
        choices=("dense", "hashed"),
    ),
    "dtype": Parameter(
        "Number type of the weights.",
        "float32",
        kind="choice",
        choices=("float32", "float64"),
    ),
    "tol": Parameter(
        "Stop when the loss of a pass (on eval_set, where given, else progressive) is not better "
        "than the best by more than this, `patience` passes in a row. With eval_set the weights "
        "of the best pass are kept, else the last. None: never stop.",
        None,
        low=0.0,
        high=1e100,
        optional=True,
    ),
    "patience": Parameter(
        "Passes without improvement before stopping.", 5, kind="integer", low=1, high=2**31
    ),
    "class_weight": Parameter(
        "Weights of the classes: a dict, 'balanced', or None.", None, kind="object", optional=True
    ),
    "warm_start": Parameter(
        "Let fit continue from the state of the fit before.", False, kind="flag"
    ),
    "random_state": Parameter("Seed of the shuffling.", None, kind="object", optional=True),
    "callback": Parameter(
        "Called with each record of history_ as it is made; a true answer stops the fit.",
        None,
        kind="object",
        optional=True,
    ),
}

# eta0="auto" on rows of norm 1: 0.75 over the loss's curvature, so that weights and intercept
# together move a prediction at most 1.5 times as far as its row asks (2 would be the limit). Losses
# without curvature count as 1.
AUTO_ETA = {"logistic": 3.0, "squared_hinge": 0.375, "square": 0.375, "clipped_square": 0.375}
AUTO_ETA_ELSE = 0.75

# gravity="auto": a penalty on the sum of the losses rather than on their mean, as FTRL's l1 is.
AUTO_GRAVITY = 0.02

RATE: dict[str, Parameter] = {
    "eta0": Parameter(
        "Learning rate of the first step. 'auto' is relative to the rows: for logistic 3, else "
        "0.75 over the curvature of the loss, divided by the squared norm of the row, or by the "
        "mean of these so far where that is larger.",
        "auto",
        low=0.0,
        open_low=True,
        high=1e30,
        choices=("auto",),
        symbol="eta",
    ),
    "schedule": Parameter(
        "How the rate falls with the step t: 'constant', 'inverse' 1/t, 'sqrt' 1/sqrt(t), 'power' "
        "1/t^power.",
        "constant",
        kind="choice",
        choices=("constant", "inverse", "sqrt", "power"),
    ),
    "power": Parameter("Exponent of the power schedule.", 0.5, low=0.0, high=1.0),
    "decay": Parameter(
        "Factor of the rate from pass to pass.", 0.8, low=0.0, open_low=True, high=1.0, symbol="rho"
    ),
}

_L2 = Parameter(
    "Ridge penalty, in units of the objective: mean loss + gravity ||w||_1 + l2/2 ||w||^2.",
    0.0,
    low=0.0,
    high=1e30,
)


def _loss(regressor_default: str) -> Parameter:
    return Parameter(
        "The loss.",
        "logistic",
        kind="choice",
        choices=tuple(dict.fromkeys(CLASSIFIER_LOSSES + REGRESSOR_LOSSES)),
        regressor_default=regressor_default,
    )


@dataclass(frozen=True)
class Rule:
    """A learning rule: its name in the core, its parameters, and what else the core is told."""

    core: str
    paper: str
    own: Mapping[str, Parameter]
    fixed: Mapping[str, Any]
    regressor_loss: str = "squared"

    @property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters, in the order of the estimators' signatures."""
        return {"loss": _loss(self.regressor_loss), **self.own, **COMMON}


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
            "l2": _L2,
            **RATE,
        },
        fixed={},
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
        fixed={},
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
            "l2": _L2,
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
        fixed={},
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
    losses = CLASSIFIER_LOSSES if task == "classifier" else REGRESSOR_LOSSES
    if params["loss"] not in losses:
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
    if params.get("center") and params["loss"] == "clipped_square":
        raise ParameterError(
            f"{owner}: center=True does not go with clipped_square, which scales each row by itself"
        )
    if params.get("callback") is not None and not callable(params["callback"]):
        raise ParameterError(f"{owner}: callback must be callable or None")


def learner_parameters(rule: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return those parameters that make a learner, and cannot change while it lives."""
    names = ("loss", "epsilon", "quantile", "fit_intercept", "store", "dtype", *RULES[rule].own)
    return {name: params[name] for name in names}


def core_parameters(
    rule: str, params: Mapping[str, Any], rows: int | None
) -> tuple[dict[str, float], dict[str, str]]:
    """Split what the core is told into numbers (flags as 0 and 1) and words, by name.

    `rows` is the number of rows, or None where it is not known beforehand.
    """
    spec = RULES[rule]
    values = {name: params[name] for name in ("loss", "epsilon", "quantile", "fit_intercept")}
    values |= {name: params[name] for name in spec.own} | dict(spec.fixed)
    if rule == "forward-backward":
        values["gravity"] = values.pop("l1")
    if "gravity" in values:
        values["fading"] = values["gravity"] == "auto" and rows is None
        if values["gravity"] == "auto":
            values["gravity"] = AUTO_GRAVITY / (rows or 1)
    if "eta0" in values:
        values["relative"] = values["eta0"] == "auto"
        if values["relative"]:
            values["eta0"] = AUTO_ETA.get(values["loss"], AUTO_ETA_ELSE)
    words = {name: value for name, value in values.items() if isinstance(value, str)}
    return {name: float(value) for name, value in values.items() if name not in words}, words
