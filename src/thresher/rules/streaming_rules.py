"""Rules that learn row by row."""

from __future__ import annotations

import math
from dataclasses import replace

from thresher.errors import setting
from thresher.rules.parameter import L1, L2, RATE, TARGET_NNZ, Parameter
from thresher.rules.rule import Rule

STREAMING_RULES: dict[str, Rule] = {
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
        penalty="gravity",
        penalty_reach=3.0,
        nonzero_store=True,
        cluster=("average",),
        estimators={
            "classifier": "TruncatedGradientClassifier",
            "regressor": "TruncatedGradientRegressor",
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
        refused_losses={
            "poisson": (
                "steps of 1/(alpha t) explode with ",
                setting("loss"),
                " 'poisson', whose slope has no bound; FTRL and truncated gradient take it",
            )
        },
        inverse_rate="alpha",
        cluster=("average",),
        estimators={"classifier": "AveragedSGDClassifier", "regressor": "AveragedSGDRegressor"},
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
        core_names={"l1": "gravity"},
        penalty="l1",
        penalty_reach=3.0,
        nonzero_store=True,
        cluster=("average",),
        estimators={
            "classifier": "ForwardBackwardClassifier",
            "regressor": "ForwardBackwardRegressor",
        },
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
            "alpha": Parameter(
                "Learning rate of a coordinate. 'auto' is 1 over the median norm of the first 100 "
                "rows.",
                1.0,
                low=1e-30,
                high=1e30,
                choices=("auto",),
                shell_default="auto",
            ),
            "beta": Parameter("Slows the first steps of a coordinate.", 1.0, low=0.0, high=1e30),
            "target_nnz": TARGET_NNZ,
        },
        steers=True,
        penalty="l1",
        penalty_unit="gradients",
        rate_from_rows="alpha",
        cluster=("average",),
        estimators={"classifier": "FTRLClassifier", "regressor": "FTRLRegressor"},
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
        penalty="l1",
        cluster=("average",),
        estimators={"classifier": "DualAveragingClassifier", "regressor": "DualAveragingRegressor"},
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
        core_names={"margin": "epsilon"},
        diverges=False,  # its weights grow as they will, and are bounded
        stands_alone=True,
        keeps_facts=True,
        ends_by_itself=True,
        penalty="l1",
        penalty_unit="update",
        cluster=("average", "columns"),
        estimators={"classifier": "MarginPerceptronClassifier"},
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
        auto_eta={"logistic": 12.0},  # four times as bold as other rules (record 6)
        needs_width=True,
        stands_alone=True,
        penalty="l1",
        cluster=("average",),
        estimators={"classifier": "MirrorDescentClassifier", "regressor": "MirrorDescentRegressor"},
    ),
}
