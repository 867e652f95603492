"""What a parameter is, and those that many rules share: defaults, ranges, a line of help."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, Literal

from thresher.losses import Task


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
    shell_default : object
        The default of the command line, where that is another one; None: it is not.
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

    def default_for(self, task: Task, shell: bool = False) -> Any:
        """Return the default of the classifier or the regressor, or of the command line."""
        if shell and self.shell_default is not None:
            return self.shell_default
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
    "passes": Parameter(
        "Passes over the data.", 20, kind="integer", low=1, high=2**31, shell_default=1
    ),
    "shuffle": Parameter(
        "Order of the rows: 'each' a new permutation each pass, 'once' one permutation for all, "
        "'replace' drawn with replacement, 'blocks' blocks of 2000 rows permuted, and rows within "
        "them (close to natural order in speed), False as they lie.",
        "each",
        kind="choice",
        choices=("each", "once", "replace", "blocks", False),
        shell_default=False,
    ),
    "fit_intercept": Parameter("Learn an intercept.", True, kind="flag"),
    "store": Parameter(
        "Where weights live: 'dense', an array of all features, or 'hashed', a table. The table "
        "follows the nonzero weights of rules that drop dead ones (truncated gradient and "
        "forward-backward without averages); for the others it holds the features seen. 'nonzero', "
        "for classifiers by these two rules with more than two classes: lists of the nonzero "
        "weights alone, of whichever features and classes. With the losses hinge and "
        "squared_hinge, classes whose margin a row satisfies cost next to nothing; logistic "
        "changes all classes at every row, and needs gravity to keep the lists short. Intercepts "
        "begin at the log-odds of the classes. 'auto' is 'hashed' where features have names but no "
        "numbers, else 'dense'.",
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

# Without meaning for rules that see all rows at once.
ROW_BY_ROW = ("shuffle", "store", "dtype", "patience", "warm_start")

# gravity="auto": a penalty on the sum of the losses rather than on their mean, as FTRL's l1 is.
AUTO_GRAVITY = 0.02

# l1="auto" of coordinate descent, over the sum of the sample weights.
AUTO_L1 = 0.1

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

L1 = Parameter(
    "Lasso penalty, in units of the objective: mean loss + l1 ||w||_1. 'auto' is 0.02 "
    "over the number of rows; in partial_fit, which cannot know it, 0.02 over the "
    "rows so far.",
    "auto",
    low=0.0,
    high=1e30,
    choices=("auto",),
    symbol="lambda",
)

L2 = Parameter(
    "Ridge penalty, in units of the objective: mean loss + gravity ||w||_1 + l2/2 ||w||^2.",
    0.0,
    low=0.0,
    high=1e30,
)


TARGET_NNZ = Parameter(
    "Keep at most so many weights, of each output: the pull towards zero is raised and lowered as "
    "learning goes, and of the weights that are left the largest are kept. None: no limit.",
    None,
    kind="integer",
    low=1,
    high=2**53,
    optional=True,
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
