"""The rule one-pass: a bank of lanes, combined by a stack."""

from __future__ import annotations

from dataclasses import replace

from thresher.rules.parameter import REFIT, TARGET_NNZ, Parameter
from thresher.rules.rule import Rule

ONE_PASS = Rule(
    core="one_pass",
    paper="docs/decisions/0015-one-pass.md: a bank of AdaGrad and diagonal Newton lanes with "
    "implicit steps, stacked by their progressive predictions",
    own={
        "lanes": Parameter(
            "Number of lanes that are combined: 12, or 4 with less memory and time. 'auto' is "
            "12 if their weights fit into 2 GiB and there are at most 16 outputs, else 4.",
            "auto",
            kind="choice",
            choices=("auto", 12, 4),
        ),
        "cut": Parameter(
            "At the end, the features that matter least are removed: together they have at "
            "most this share of the variance of the predictions.",
            0.001,
            low=0.0,
            high=1.0,
        ),
        "target_nnz": replace(
            TARGET_NNZ,
            help="Keep at most this number of nonzero weights per output: those that matter "
            "most for the predictions. None: no limit.",
        ),
        "refit": REFIT,
        "epsilon": Parameter(
            "The error at which huber becomes linear. 'auto' is one standard deviation of the "
            "targets.",
            "auto",
            low=0.0,
            open_low=True,
            high=1e100,
            choices=("auto",),
        ),
        "passes": Parameter(
            "Passes over the data. Each pass learns a model of its own, and the result is "
            "their mean; so passes need different orders of the rows.",
            1,
            kind="integer",
            low=1,
            high=2**31,
        ),
    },
    losses=("logistic", "squared", "huber", "quantile", "poisson"),
    without=("epsilon", "passes"),
    diverges=False,  # no step overshoots
    chooses_at_end=True,
    scales_columns=True,
    standardises_in_core=True,
    cuts=True,
    refit_rule="ftrl",
    estimators={"classifier": "OnePassClassifier", "regressor": "OnePassRegressor"},
)
