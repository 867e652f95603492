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
                "'robust' compares evidence with noise over whole passes and chooses the number of "
                "weights by the labels of other rows; 'paper' is the published algorithm with its "
                "misprints corrected.",
                "robust",
                kind="choice",
                choices=("robust", "paper"),
            ),
            "target_nnz": Parameter(
                "robust: keep at most this number of nonzero weights. None: the loss on the other "
                "half of the rows chooses the number; it is 0 if there is no signal.",
                None,
                kind="integer",
                low=1,
                high=2**53,
                optional=True,
            ),
            "rejection": Parameter(
                "robust: share of the features that a stage purges; paper: largest share of "
                "updates that are rejected. 'auto' is 0.5 for robust and 0.7 for paper.",
                "auto",
                low=0.0,
                high=0.99,
                choices=("auto",),
                symbol="beta_0",
            ),
            "keep": Parameter(
                "Features with a selection probability below this are purged.",
                0.5,
                low=0.0,
                high=1.0,
                symbol="pi_0",
            ),
            "min_updates": Parameter(
                "robust: a feature is judged when it has occurred in this number of rows; paper: "
                "when it has had more updates than this. 'auto' is 5 for robust (less below 200 "
                "rows) and 0 for paper.",
                "auto",
                kind="integer",
                low=0,
                high=2**31,
                choices=("auto",),
                symbol="delta_K",
            ),
            "paths": Parameter(
                "Number of models that are trained in parallel, each on its own order of the rows; "
                "the result is their mean. Must be even for robust.",
                16,
                kind="integer",
                low=1,
                high=1024,
                symbol="M",
            ),
            "annealing": Parameter(
                "paper: how the rejection rate falls as features are purged. 0: in proportion to "
                "the features left; below 0: later; above 0: sooner.",
                -1.0,
                low=-1e3,
                high=1e3,
                symbol="gamma",
            ),
            "burst": Parameter(
                "paper: number of steps of a path between two truncations.",
                5,
                kind="integer",
                low=1,
                high=10**6,
                symbol="K",
            ),
            "bursts": Parameter(
                "paper: number of bursts of a path in a stage.",
                5,
                kind="integer",
                low=1,
                high=2**16 - 1,
                symbol="n_K",
            ),
            "burst_growth": Parameter(
                "paper: bursts become longer as features are purged: burst * ln(1 / (burst_growth "
                "* share of features left)) steps; with 1/e the first has `burst` steps. None: the "
                "length is constant.",
                None,
                low=0.0,
                open_low=True,
                high=1.0,
                optional=True,
                symbol="alpha",
            ),
            "count": Parameter(
                "paper: which rows count as evidence for a feature. 'x': rows that have it; "
                "'gradient': rows that have it and change weights.",
                "x",
                kind="choice",
                choices=("x", "gradient"),
            ),
            "gravity_rule": Parameter(
                "paper: gravity is a quantile of the updates of a stage, as published, or of the "
                "weights at each truncation, as in the authors' program.",
                "update-quantile",
                kind="choice",
                choices=("update-quantile", "weight-quantile"),
            ),
            "eta0": Parameter(
                "Learning rate. robust: divided by the squared norm of the row or by the mean "
                "squared norm, whichever is larger; 'auto' is 2 for logistic, 1 for hinge, 0.25 "
                "for squared_hinge. paper: not divided; 'auto' is 0.1.",
                "auto",
                low=0.0,
                open_low=True,
                high=1e30,
                choices=("auto",),
                symbol="eta",
            ),
            "tol": Parameter(
                "paper: stop when a pass purged no feature and changed the model by less than this "
                "share of its norm. None: never stop early.",
                None,
                low=0.0,
                high=1e100,
                optional=True,
            ),
            "n_jobs": Parameter(
                "Number of threads; -1 is all processors, None is one. The result is the same for "
                "any number.",
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
        no_lanes="its paths train in stages",
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
                "over the sum of the sample weights (the number of rows, if there are no weights).",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="lambda",
                fixes_units=True,
            ),
            "step": Parameter(
                "'newton': Newton steps on working sets, until the duality gap is small. "
                "'coordinate': random coordinates, with steps of 1 / (beta mean(x_j^2)), where "
                "beta is the curvature of the loss; also if l1 is 0. 'global': the same with steps "
                "of 1 / beta, as published, for features in [-1, 1].",
                "newton",
                kind="choice",
                choices=("newton", "coordinate", "global"),
            ),
            "passes": Parameter(
                "Largest number of scans: working sets, or as many draws of coordinates as there "
                "are features.",
                1000,
                kind="integer",
                low=1,
                high=2**31,
            ),
            "tol": Parameter(
                "newton: stop when the duality gap is at most this share of the objective of a "
                "model without features; 'auto' is 1e-4. Other steps: stop when the optimality "
                "conditions are violated by at most this share of the largest slope at w = 0; see "
                "violation_. 'auto' is 1e-3, and the last scan must also have lowered the "
                "objective by at most 1e-4 of it, because a column much larger than the others "
                "decides the largest slope. None: make all passes.",
                "auto",
                low=0.0,
                high=1e100,
                choices=("auto",),
                optional=True,
                auto=1e-3,
            ),
            "n_jobs": Parameter(
                "Number of threads, one for each output at most; -1 is all processors, None is "
                "one. The result is the same for any number.",
                None,
                kind="integer",
                low=-1,
                high=1024,
                optional=True,
            ),
        },
        without=("quantile", "passes", "tol", *ROW_BY_ROW),
        streams=False,
        repeats_rows=False,
        no_lanes="it needs all rows at once",
        penalty="l1",
        scales_columns=True,
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
                "Number of weights kept after each iteration. None: a tenth of the rows or of the "
                "features, whichever is more, and at least 10; but not more than the features.",
                None,
                kind="integer",
                low=1,
                high=2**53,
                optional=True,
                symbol="s",
            ),
            "step": Parameter(
                "Step size. 'safe' is 1 over the largest eigenvalue of X'X; with it the residual "
                "never grows.",
                "safe",
                low=0.0,
                open_low=True,
                high=1e30,
                choices=("safe",),
                symbol="1/gamma",
                fixes_units=True,
            ),
            "passes": Parameter(
                "Largest number of iterations.", 1000, kind="integer", low=1, high=2**31
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
        repeats_rows=False,
        no_lanes="it needs all rows at once",
        estimators={"regressor": "HardThresholdRegressor"},
    ),
}
