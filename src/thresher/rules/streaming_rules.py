"""Rules that learn row by row."""

from __future__ import annotations

import math
from dataclasses import replace

from thresher.errors import setting
from thresher.rules.one_pass import ONE_PASS
from thresher.rules.parameter import L1, L2, RATE, REFIT, TARGET_NNZ, Parameter, jobs_for
from thresher.rules.rule import Rule

STREAMING_RULES: dict[str, Rule] = {
    "truncated-gradient": Rule(
        core="truncated_gradient",
        paper="Langford, Li, Zhang: Sparse Online Learning via Truncated Gradient (NIPS 2008)",
        own={
            "gravity": Parameter(
                "Lasso penalty, in units of the objective: a step of rate eta shrinks weights by "
                "eta * gravity. 0 is plain SGD. 'auto' is 0.02 over the number of rows; in "
                "partial_fit, over the number of rows so far.",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="g",
                fixes_units=True,
            ),
            "period": Parameter(
                "Number of steps between truncations; each shrinks by `period` steps' gravity.",
                10,
                kind="integer",
                low=1,
                high=2**31,
                symbol="K",
            ),
            "ceiling": Parameter(
                "Weights above this are not shrunk; with shrink='round', weights below become "
                "zero.",
                math.inf,
                low=0.0,
                symbol="theta",
                fixes_units=True,
            ),
            "shrink": Parameter(
                "'truncate' shrinks weights towards zero and stops at zero; 'round' sets weights "
                "below the ceiling to zero and does not use gravity; 'subgradient' subtracts "
                "gravity times the sign, and may cross zero.",
                "truncate",
                kind="choice",
                choices=("truncate", "round", "subgradient"),
            ),
            "target_nnz": TARGET_NNZ,
            "refit": REFIT,
            "average": Parameter(
                "Predict with the mean of the weights over all steps; it is exact under "
                "truncation.",
                False,
                kind="flag",
            ),
            "l2": L2,
            **RATE,
            "certify": Parameter(
                "Compute the regret certificate; training is slower. It needs shrink='truncate' "
                "without ceiling, l2 and average, a number as eta0, schedule='constant' and "
                "decay=1.",
                False,
                kind="flag",
            ),
            "n_jobs": jobs_for("with target_nnz or certify"),
        },
        hooks="regret",
        refit_rule="truncated-gradient",
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
                "Regularisation: alpha/2 (||w||^2 + b^2); the step is 1/(alpha t). 'auto' is 2 "
                "(30 in a regression) times the squared median norm of the first 100 rows, over "
                "the number of steps: rows times passes, or 20,000 if the number of rows is not "
                "known. For losses whose slope has no bound, it is at least 0.1 times that square.",
                "auto",
                low=0.0,
                open_low=True,
                high=1e30,
                choices=("auto",),
                symbol="lambda",
                fixes_units=True,
            ),
            "average": Parameter(
                "Predict with the mean of the weights over all steps; False: with the last "
                "weights.",
                True,
                kind="flag",
            ),
            "center": Parameter(
                "Centre the rows by their mean; they stay sparse in memory.", False, kind="flag"
            ),
            "n_jobs": jobs_for("with center"),
        },
        regressor_loss="huber",  # with squared, steps of 1/(alpha t) diverge
        refused_losses={
            "poisson": (
                "steps of 1/(alpha t) diverge with ",
                setting("loss"),
                " 'poisson', whose slope has no bound; use FTRL or truncated gradient for it",
            )
        },
        hooks="centring",
        inverse_rate="alpha",
        rate_from_rows="alpha",
        auto_rate={"classifier": 2.0, "regressor": 30.0},
        norm_power=2,
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
                "Lasso penalty, as published: it acts on the sum of the gradients, and does not "
                "grow with the number of rows. 'auto' is 0.1.",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="lambda_1",
                auto=0.1,
                fixes_units=True,
            ),
            "l2": Parameter(
                "Ridge penalty, as published.",
                0.0,
                low=0.0,
                high=1e30,
                symbol="lambda_2",
                fixes_units=True,
            ),
            "alpha": Parameter(
                "Learning rate of each coordinate. 'auto' is 1 over the median norm of the first "
                "100 rows; 0.3 over it in a regression.",
                "auto",
                low=1e-30,
                high=1e30,
                choices=("auto",),
                symbol="alpha",
                fixes_units=True,
            ),
            "beta": Parameter(
                "Makes the first steps of each coordinate smaller. 'auto' is 0.1.",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="beta",
                auto=0.1,
                fixes_units=True,
            ),
            "target_nnz": TARGET_NNZ,
            "refit": REFIT,
            "n_jobs": jobs_for("with target_nnz"),
        },
        steers=True,
        refit_rule="ftrl",
        penalty="l1",
        penalty_unit="gradients",
        rate_from_rows="alpha",
        auto_rate={"regressor": 0.3},
        cluster=("average",),
        estimators={"classifier": "FTRLClassifier", "regressor": "FTRLRegressor"},
    ),
    "one-pass": ONE_PASS,
    "adagrad": Rule(
        core="adagrad",
        paper="Duchi, Hazan, Singer: Adaptive Subgradient Methods for Online Learning and "
        "Stochastic Optimization (JMLR 2011)",
        own={
            "l1": replace(L1, help=L1.help.replace("0.02", "0.005")),
            "alpha": Parameter(
                "Learning rate. 'auto' is 1 over the median norm of the first 100 rows; 0.3 over "
                "it in a regression.",
                "auto",
                low=1e-30,
                high=1e30,
                choices=("auto",),
                symbol="eta",
                fixes_units=True,
            ),
            "delta": Parameter(
                "Makes the first steps of each coordinate smaller. 'auto' is 0.01.",
                "auto",
                low=1e-10,
                high=1e30,
                choices=("auto",),
                symbol="delta",
                auto=0.01,
                fixes_units=True,
            ),
        },
        penalty="l1",
        rate_from_rows="alpha",
        auto_rate={"regressor": 0.3},
        auto_penalty=0.005,
        cluster=("average",),
        estimators={"classifier": "AdaGradClassifier", "regressor": "AdaGradRegressor"},
    ),
    "dual-averaging": Rule(
        core="dual_averaging",
        paper="Xiao: Dual Averaging Methods for Regularized Stochastic Learning and Online "
        "Optimization (JMLR 2010)",
        own={
            "l1": L1,
            "strength": Parameter(
                "Strength of the proximal term: after t steps the weights are the truncated sum of "
                "gradients over strength * sqrt(t). 'auto' is relative to the rows: the curvature "
                "of the loss (0.04 times it for logistic and other losses with a bounded slope) "
                "times the mean squared norm.",
                "auto",
                low=1e-30,
                high=1e30,
                choices=("auto",),
                symbol="gamma",
                fixes_units=True,
            ),
            "boost": Parameter(
                "Adds strength * boost / sqrt(t) to l1, so that early models are sparser.",
                0.0,
                low=0.0,
                high=1e30,
                symbol="rho",
                fixes_units=True,
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
                "Only rows with y w.x at or below this update the weights. 'auto' is 3 eta0 times "
                "the squared median norm of the first 100 rows; in the cluster's mode 'columns', "
                "3 eta0.",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="tau",
            ),
            "l1": Parameter(
                "Each update shrinks the weights it touches by this amount; it is not multiplied "
                "by eta0.",
                1e-3,
                low=0.0,
                high=1e30,
                symbol="lambda",
            ),
            "eta0": Parameter(
                "Size of an update; predicted classes depend only on margin / eta0 and l1 / eta0.",
                1.0,
                low=0.0,
                open_low=True,
                high=1e30,
                symbol="eta",
            ),
            "shrink": Parameter(
                "'touched': an update shrinks only the weights of its row, as published; 'all': it "
                "shrinks every weight, so that l1 controls the number of nonzero weights.",
                "touched",
                kind="choice",
                choices=("touched", "all"),
            ),
            "max_density": Parameter(
                "Stop learning when this share of the weights is nonzero. None: no limit.",
                None,
                low=0.0,
                open_low=True,
                high=1.0,
                optional=True,
                symbol="s",
            ),
            "levels": Parameter(
                "Increasing shares of nonzero weights; when each is reached, a copy of the model "
                "is kept in level_models_.",
                (),
                kind="object",
            ),
            "n_jobs": jobs_for(),
        },
        without=("epsilon", "quantile"),
        core_names={"margin": "epsilon"},
        diverges=False,  # its weights grow, but have a bound
        rate_from_rows="margin",
        auto_rate={"classifier": 3.0},
        norm_power=2,
        hooks="levels",
        separate_outputs=True,
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
                "Each step shrinks every coordinate of the dual vector by this; see threshold. "
                "'auto' is 0.02 over the number of rows, in units of the objective, as with "
                "threshold='scaled'; if the number of rows is not known, it is 1e-6.",
                "auto",
                low=0.0,
                high=1e30,
                choices=("auto",),
                symbol="lambda",
                fixes_units=True,
            ),
            "threshold": Parameter(
                "'paper': each step shrinks by l1; 'scaled': by eta * l1, so that l1 is in units "
                "of the objective.",
                "paper",
                kind="choice",
                choices=("paper", "scaled"),
            ),
            "p": Parameter(
                "The p-norm that maps the dual vector to weights. '2ln' is 2 ln(features), '0.5ln' "
                "is 0.5 ln(features); both are at least 2. p = 2 is truncated gradient.",
                "0.5ln",
                low=2.0,
                high=1e4,
                choices=("2ln", "0.5ln"),
                symbol="p",
            ),
            **RATE,
            "eta0": replace(
                RATE["eta0"],
                help="Learning rate of the first step. 'auto' is relative to the rows: 0.75 over "
                "the curvature of the loss, divided by (p - 1) ||x||_p^2 of the row or by the mean "
                "of these so far, whichever is larger; for losses with a bounded slope, such as "
                "logistic, times p - 1.",
            ),
            "n_jobs": jobs_for(),
        },
        without=("store", "dtype"),
        needs_width=True,
        separate_outputs=True,
        penalty="l1",
        cluster=("average",),
        estimators={"classifier": "MirrorDescentClassifier", "regressor": "MirrorDescentRegressor"},
    ),
}
