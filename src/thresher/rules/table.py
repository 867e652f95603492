"""Every rule and every parameter, once: defaults, ranges, the paper's symbol, a line of help.

The estimators take their checks and documentation from this table, and so do the command line and
the search. It imports nothing heavy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from thresher.losses import LOSSES, SELECTABLE_LOSSES, Task
from thresher.rules.parameter import (
    COMMON,
    L1,
    L2,
    RATE,
    ROW_BY_ROW,
    TARGET_NNZ,
    Parameter,
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
    losses: tuple[str, ...] = SELECTABLE_LOSSES
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
        return tuple(name for name in LOSSES if name in self.losses and task in LOSSES[name].tasks)


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
            "target_nnz": TARGET_NNZ,
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
            "l1": L1,
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
            "target_nnz": TARGET_NNZ,
        },
    ),
    "stabilized": Rule(
        core="stabilized",
        paper="Ma, Zheng: Stabilized Sparse Online Learning for Sparse Data (JMLR 2017)",
        losses=("logistic", "hinge", "squared_hinge"),
        own={
            "variant": Parameter(
                "'robust' weighs evidence against noise over whole passes and ends with as many "
                "weights as the rows can tell apart; 'paper' is the published algorithm, its "
                "misprints corrected.",
                "robust",
                kind="choice",
                choices=("robust", "paper"),
            ),
            "target_nnz": Parameter(
                "robust: keep at most so many weights. None: the root of a tenth of the rows times "
                "the features that min_updates rows have, but not below 400 or a third of these.",
                None,
                kind="integer",
                low=1,
                high=2**53,
                optional=True,
            ),
            "rejection": Parameter(
                "robust: share of the features that a stage purges; paper: largest share of "
                "updates that are rejected. 'auto' is 0.5 and 0.7.",
                "auto",
                low=0.0,
                high=0.99,
                choices=("auto",),
                symbol="beta_0",
            ),
            "keep": Parameter(
                "Features with a selection probability below it are purged.",
                0.5,
                low=0.0,
                high=1.0,
                symbol="pi_0",
            ),
            "min_updates": Parameter(
                "robust: rows that must have a feature before it is judged; paper: updates that "
                "must be exceeded. 'auto' is 5, fewer below 200 rows, and 0.",
                "auto",
                kind="integer",
                low=0,
                high=2**31,
                choices=("auto",),
                symbol="delta_K",
            ),
            "paths": Parameter(
                "Models that learn side by side, each in its own order; the result is their mean. "
                "robust needs an even number.",
                16,
                kind="integer",
                low=1,
                high=1024,
                symbol="M",
            ),
            "annealing": Parameter(
                "paper: how the rejection rate falls as features are purged; 0 in proportion, "
                "below 0 later, above 0 sooner.",
                -1.0,
                low=-1e3,
                high=1e3,
                symbol="gamma",
            ),
            "burst": Parameter(
                "paper: steps of a path between truncations.",
                5,
                kind="integer",
                low=1,
                high=10**6,
                symbol="K",
            ),
            "bursts": Parameter(
                "paper: bursts of a path in a stage.",
                5,
                kind="integer",
                low=1,
                high=2**16 - 1,
                symbol="n_K",
            ),
            "burst_growth": Parameter(
                "paper: bursts grow as features are purged, to burst * ln(1 / (burst_growth * "
                "share left)); 1/e begins with burst. None: they do not.",
                None,
                low=0.0,
                open_low=True,
                high=1.0,
                optional=True,
                symbol="alpha",
            ),
            "count": Parameter(
                "paper: what makes evidence of a feature: 'x', a row that has it, or 'gradient', "
                "a row that has it and changes weights.",
                "x",
                kind="choice",
                choices=("x", "gradient"),
            ),
            "gravity_rule": Parameter(
                "paper: gravity by the quantile of the updates of a stage, as published, or by "
                "that of the weights at each truncation, as in the authors' program.",
                "update-quantile",
                kind="choice",
                choices=("update-quantile", "weight-quantile"),
            ),
            "eta0": Parameter(
                "Learning rate. robust: divided by the squared norm of the row, or by the mean of "
                "these where that is larger; 'auto' is 2 for logistic, 1 for hinge, 0.25 for "
                "squared_hinge. paper: as it is; 'auto' is 0.1.",
                "auto",
                low=0.0,
                open_low=True,
                high=1e30,
                choices=("auto",),
                symbol="eta",
            ),
            "tol": Parameter(
                "paper: stop when, over a pass, nothing was purged and the model moved by less "
                "than this share of its norm. None: never.",
                None,
                low=0.0,
                high=1e100,
                optional=True,
            ),
            "n_jobs": Parameter(
                "Threads; -1 is all processors, None is one. The result is the same for any "
                "number.",
                None,
                kind="integer",
                low=-1,
                high=1024,
                optional=True,
            ),
        },
        without=(
            "epsilon",
            "quantile",
            "shuffle",
            "fit_intercept",
            "store",
            "tol",
            "patience",
            "warm_start",
        ),
    ),
    "dual-averaging": Rule(
        core="dual_averaging",
        paper="Xiao: Dual Averaging Methods for Regularized Stochastic Learning and Online "
        "Optimization (JMLR 2010)",
        own={
            "l1": L1,
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
        paper="Xie et al.: Efficient and Numerically Stable Sparse Learning (ECML PKDD 2010)",
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
                1e-4,
                low=0.0,
                high=1e30,
                symbol="lambda",
                regressor_default=1e-5,
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
            "eta0": replace(
                RATE["eta0"],
                help="Learning rate of the first step. 'auto' is relative to the rows: for "
                "logistic 12, else 0.75 over the curvature of the loss, divided by (p - 1) "
                "||x||_p^2 of the row, or by the mean of these so far where that is larger.",
            ),
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
                "Lasso penalty, in units of the objective: mean loss + l1 ||w||_1. 'auto' is 0.1 "
                "over the sum of the sample weights: the number of rows, where there are none.",
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
            "passes": Parameter(
                "Most scans to make; a scan draws as many coordinates as there are features.",
                1000,
                kind="integer",
                low=1,
                high=2**31,
            ),
            "tol": Parameter(
                "Stop when the conditions of the optimum are off by at most this share of the "
                "largest slope where all weights are 0; see violation_. None: make all passes.",
                1e-3,
                low=0.0,
                high=1e100,
                optional=True,
            ),
        },
        without=("quantile", "passes", "tol", *ROW_BY_ROW),
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
            "passes": Parameter(
                "Most iterations to make.", 1000, kind="integer", low=1, high=2**31
            ),
            "tol": Parameter(
                "Stop when an iteration lowers the sum of squares by at most this share of it. "
                "None: make all passes.",
                1e-4,
                low=0.0,
                high=1e100,
                optional=True,
            ),
        },
        without=(
            *("epsilon", "quantile", "passes", "tol", "class_weight", "random_state"),
            *ROW_BY_ROW,
        ),
    ),
}
