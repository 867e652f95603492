"""Rules that need all rows at once."""

from __future__ import annotations

from thresher.losses import LOSSES
from thresher.rules.parameter import ROW_BY_ROW, Parameter
from thresher.rules.rule import Rule

MATRIX_RULES: dict[str, Rule] = {
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
        auto_eta={"logistic": 2.0, "hinge": 1.0, "squared_hinge": 0.25},  # variant="robust"
        streams=False,
        no_lanes="its paths are read in stages of their own",
        cluster=("stages",),
        estimators={"classifier": "StabilizedClassifier"},
    ),
    "coordinate-descent": Rule(
        core="coordinate_descent",
        paper="Shalev-Shwartz, Tewari: Stochastic Methods for l1 Regularized Loss Minimization "
        "(ICML 2009): SCD",
        losses=tuple(n for n, loss in LOSSES.items() if loss.curvature and not loss.scales_rows),
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
        streams=False,
        no_lanes="it needs all rows at once",
        penalty="l1",
        estimators={
            "classifier": "CoordinateDescentClassifier",
            "regressor": "CoordinateDescentRegressor",
        },
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
        streams=False,
        no_lanes="it needs all rows at once",
        estimators={"regressor": "HardThresholdRegressor"},
    ),
}
