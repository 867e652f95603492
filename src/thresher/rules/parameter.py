"""The class `Parameter`, and the parameters that several rules share."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, Literal

from thresher.losses import Task


@dataclass(frozen=True)
class Parameter:
    """One parameter: its meaning, its default and its allowed values.

    Parameters
    ----------
    help : str
        What it does; shown in the documentation and by ``--help``.
    default : object
        The default of classifier and regressor.
    kind : {"number", "integer", "flag", "choice", "object"}
        How a value is checked.
    low, high : float
        Bounds of a number; with ``open_low`` the lower bound itself is not allowed.
    choices : tuple
        The allowed values of a choice; for a number, words that are allowed instead of it.
    optional : bool
        Whether None is allowed.
    symbol : str
        The symbol in the paper.
    regressor_default : object
        The default of the regressor, if it differs; None: it does not.
    shell_default : object
        The default of the command line, if it differs; None: it does not.
    auto : float or None
        The number that "auto" stands for; None: it depends on the rows, or is not allowed.
    fixes_units : bool
        Whether a number for it is in the units of y, or decides together with them how a regressor
        learns: targets are then not standardised (`core_args.standardises`).
    of_classifiers : bool
        Whether regressors do not have it.
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
    shell_default: Any = None
    auto: float | None = None
    fixes_units: bool = False
    of_classifiers: bool = False

    def default_for(self, task: Task, shell: bool = False) -> Any:
        """Return the default of the classifier or the regressor, or of the command line."""
        if shell and self.shell_default is not None:
            return self.shell_default
        if task == "regressor" and self.regressor_default is not None:
            return self.regressor_default
        return self.default

    def allowed(self) -> str:
        """Return a description of the allowed values."""
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
        """Return whether the value is allowed."""
        if value is None:
            return self.optional
        if type(value) is float and self.kind == "number" and self.low < value <= self.high:
            return True  # the usual case, without the slower checks below
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
        number: Any = value  # not converted to float: huge integers would overflow
        return bool(self.low <= number <= self.high and not (self.open_low and number == self.low))


COMMON: dict[str, Parameter] = {
    "epsilon": Parameter(
        "The error at which huber becomes linear; half the width of the epsilon_insensitive tube. "
        "'auto' is 0.1; where targets are standardised, in units of their standard deviation, and "
        "1 for huber.",
        "auto",
        low=0.0,
        high=1e100,
        choices=("auto",),
        auto=0.1,
        fixes_units=True,
    ),
    "quantile": Parameter("The quantile that the quantile loss estimates.", 0.5, low=0.0, high=1.0),
    "passes": Parameter(
        "Passes over the data.", 20, kind="integer", low=1, high=2**31, shell_default=1
    ),
    "shuffle": Parameter(
        "Order of the rows: 'each' is a new permutation in each pass; 'once' is one permutation "
        "for all passes; 'replace' draws rows with replacement; 'blocks' permutes blocks of 2000 "
        "rows, and the rows within them, and is almost as fast as no shuffling; False keeps the "
        "order of the data. Rows of a source are kept for 'each', 'once' and 'replace': up to 256 "
        "MiB in memory, more in a temporary file; a source that can be read only once has a buffer "
        "(`shuffle_buffer` of scan). With 'blocks', blocks of a source have about a megabyte.",
        "each",
        kind="choice",
        choices=("each", "once", "replace", "blocks", False),
        shell_default=False,
    ),
    "fit_intercept": Parameter("Learn an intercept.", True, kind="flag"),
    "store": Parameter(
        "How weights are stored. 'dense' is an array over all features. 'hashed' is a hash table; "
        "for truncated gradient and forward-backward without averages it holds the nonzero "
        "weights, for other rules all features seen; with a known number of features it becomes an "
        "array when that is no larger than two tables. 'nonzero' is for classifiers by these two "
        "rules with more than two classes; it keeps one list of nonzero weights per feature. With "
        "the losses hinge and squared_hinge, a row costs almost no time for classes whose margin "
        "it satisfies; logistic updates all classes at every row, and needs gravity to keep the "
        "lists short. With 'nonzero', intercepts start at the log-odds of the classes. 'auto' is "
        "'hashed' if features have names but no numbers, else 'dense'.",
        "dense",
        kind="choice",
        choices=("dense", "hashed", "nonzero", "auto"),
        shell_default="auto",
    ),
    "dtype": Parameter(
        "Number type of the weights.",
        "float32",
        kind="choice",
        choices=("float32", "float64"),
    ),
    "tol": Parameter(
        "Stop after `patience` passes in a row that did not lower the best loss by more than this. "
        "The loss is that on eval_set, if given, else the progressive loss. With eval_set the "
        "weights of the best pass are kept, else those of the last. None: never stop early.",
        None,
        low=0.0,
        high=1e100,
        optional=True,
    ),
    "patience": Parameter(
        "Passes without improvement before stopping.", 5, kind="integer", low=1, high=2**31
    ),
    "class_weight": Parameter(
        "Weights of the classes: a dict, 'balanced', or None for equal weights.",
        None,
        kind="object",
        optional=True,
        of_classifiers=True,
    ),
    "warm_start": Parameter(
        "Let fit continue from the state of the previous fit.", False, kind="flag"
    ),
    "random_state": Parameter("Random seed of the shuffling.", None, kind="object", optional=True),
    "callback": Parameter(
        "Function that is called with each new record of history_; if it returns true, the fit "
        "stops.",
        None,
        kind="object",
        optional=True,
    ),
    "verbose": Parameter(
        "1: `fit` prints progress to standard error, as a line that is overwritten on a terminal, "
        "else as lines from time to time. Results do not depend on it.",
        0,
        kind="integer",
        low=0,
        high=2**31,
    ),
}

# Parameters that change neither the model nor what a model file or a checkpoint says of it.
UNRECORDED = ("n_jobs", "verbose")

# Common parameters that rules without row-by-row learning do not have.
ROW_BY_ROW = ("shuffle", "store", "dtype", "patience", "warm_start")

# gravity="auto" is this number over the number of rows: like FTRL's l1, a penalty on the sum of
# the losses, not on their mean.
AUTO_GRAVITY = 0.02

# l1="auto" of coordinate descent is this number over the sum of the sample weights.
AUTO_L1 = 0.1

RATE: dict[str, Parameter] = {
    "eta0": Parameter(
        "Learning rate of the first step. 'auto' is relative to the rows: 3 for logistic, else "
        "0.75 over the curvature of the loss; both are divided by the squared norm of the row or "
        "by the mean squared norm so far, whichever is larger.",
        "auto",
        low=0.0,
        open_low=True,
        high=1e30,
        choices=("auto",),
        symbol="eta",
        fixes_units=True,
    ),
    "schedule": Parameter(
        "Factor of the rate at step t: 'constant' is 1, 'inverse' 1/t, 'sqrt' 1/sqrt(t), 'power' "
        "1/t^power.",
        "constant",
        kind="choice",
        choices=("constant", "inverse", "sqrt", "power"),
    ),
    "power": Parameter("Exponent of the power schedule.", 0.5, low=0.0, high=1.0),
    "decay": Parameter(
        "After each pass the rate is multiplied by this.",
        0.8,
        low=0.0,
        open_low=True,
        high=1.0,
        symbol="rho",
    ),
}

L1 = Parameter(
    "Lasso penalty, in units of the objective: mean loss + l1 ||w||_1. 'auto' is 0.02 over the "
    "number of rows; in partial_fit, over the number of rows so far.",
    "auto",
    low=0.0,
    high=1e30,
    choices=("auto",),
    symbol="lambda",
    fixes_units=True,
)

L2 = Parameter(
    "Ridge penalty, in units of the objective: mean loss + gravity ||w||_1 + l2/2 ||w||^2.",
    0.0,
    low=0.0,
    high=1e30,
    fixes_units=True,
)


def jobs_for(when: str = "") -> Parameter:
    """Return `n_jobs` of a rule whose outputs are separate in the case `when`; empty: always.

    Examples
    --------
    >>> from thresher.rules.parameter import jobs_for
    >>> jobs_for("with center=True").help
    'Number of threads for several outputs (...) with center=True; -1 is all processors, ...'
    """
    case = f" {when}" if when else ""
    return Parameter(
        f"Number of threads for several outputs (more than two classes, or several labels){case}; "
        f"-1 is all processors, None is one. The result is the same for any number.",
        None,
        kind="integer",
        low=-1,
        high=1024,
        optional=True,
        of_classifiers=True,
    )


TARGET_NNZ = Parameter(
    "Keep at most this number of nonzero weights per output: training raises and lowers the "
    "penalty to reach it, and at the end keeps the largest weights. None: no limit.",
    None,
    kind="integer",
    low=1,
    high=2**53,
    optional=True,
)

REFIT = Parameter(
    "With target_nnz: after the last pass, learn the kept weights again from the kept features "
    "alone, without the penalty that chose them or with less of it, if that lowers the held-out "
    "loss. The rows are read once more. Rows that can be read only once, and partial_fit, are not "
    "refitted. False: keep the weights as the passes left them.",
    True,
    kind="flag",
)


def loss_parameter(losses: tuple[str, ...], regressor_default: str) -> Parameter:
    """Return the parameter `loss` of a rule."""
    return Parameter(
        "The loss.",
        "logistic",
        kind="choice",
        choices=losses,
        regressor_default=regressor_default,
    )
