"""For each rule that learns row by row: its oracle, and the parameters that property tests draw.

A new rule gets an entry here, and an oracle in `tests/oracles`. The tests of the core, of lanes and
of averaging then cover it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from oracles.adagrad import AdaGradPart, adagrad
from oracles.averaging import Part
from oracles.dual_averaging import dual_averaging
from oracles.ftrl import ftrl
from oracles.result import Result

Values = dict[str, list[Any]]


@dataclass(frozen=True)
class RuleCase:
    """Values of the parameters of a rule, by name, from which tests draw.

    Attributes
    ----------
    oracle : callable or None
        The naive version, for rules whose parameters can be combined freely; other rules have
        their own tests. It takes the parameters under the names of the core.
    drawn : dict
        Values that the core and the oracle are compared with. They are not round numbers, so that
        no weight is exactly at a threshold.
    lanes : dict
        Values that lanes of one group differ in.
    averaged : dict
        Values for training in parts that are averaged.
    part : type
        The naive version of a part.
    resumed : list of dict
        Parameters of the core for runs that are cut, saved and restored.
    """

    oracle: Callable[..., Result] | None = None
    drawn: Values = field(default_factory=dict)
    lanes: Values = field(default_factory=dict)
    averaged: Values = field(default_factory=dict)
    part: type[Part] = Part
    resumed: list[dict[str, Any]] = field(default_factory=list)


_RATES: Values = {
    "eta0": [0.3, "auto"],
    "schedule": ["constant", "sqrt"],
    "decay": [1.0, 0.8],
}

CASES: dict[str, RuleCase] = {
    "truncated-gradient": RuleCase(
        lanes={
            "gravity": [0.0, 1e-3, 0.02, 0.1],
            "eta0": [0.05, 0.3, "auto"],
            "period": [1, 3],
            "schedule": ["constant", "sqrt"],
            "l2": [0.0, 0.01],
            "shrink": ["truncate", "subgradient"],
            "ceiling": [float("inf"), 0.2],
            "average": [False, True],
            "decay": [1.0, 0.7],
        },
        averaged={
            "gravity": [0.0, 0.02, "auto"],
            "period": [1, 3],
            "ceiling": [np.inf, 0.3],
            "shrink": ["truncate", "round", "subgradient"],
            "average": [False, True],
            "l2": [0.0, 0.1, 3.0],
            **_RATES,
        },
        resumed=[
            {"gravity": 0.05, "period": 3, "schedule": "sqrt"},
            {"gravity": 0.05, "period": 3, "certify": True},
            {"gravity": 0.05, "period": 3, "average": True, "l2": 0.1},
            {"gravity": 0.05, "relative": True, "eta0": 0.5, "fading": True},
            {"shrink": "round", "ceiling": 0.05, "period": 4},
            {"shrink": "subgradient", "gravity": 0.05, "schedule": "inverse"},
        ],
    ),
    "forward-backward": RuleCase(
        lanes={"l1": [0.0, 1e-3, 0.03], "eta0": [0.1, 0.4], "l2": [0.0, 0.1]},
        averaged={"l1": [0.0, 0.02, "auto"], "l2": [0.0, 0.1], **_RATES},
    ),
    "averaged-sgd": RuleCase(
        lanes={"alpha": [0.01, 0.5, 2.0, 20.0]},
        averaged={"alpha": [0.1, 1.0], "average": [False, True]},
        resumed=[{"alpha": 0.5}, {"alpha": 0.5, "center": True}],
    ),
    "ftrl": RuleCase(
        oracle=ftrl,
        drawn={
            "l1": [0.0, 0.151, 0.713],
            "l2": [0.0, 0.31],
            "alpha": [0.11, 0.53],
            "beta": [0.0, 1.0],
        },
        lanes={"l1": [0.0, 0.5, 2.0], "l2": [0.0, 0.1], "alpha": [0.1, 1.0], "beta": [0.5, 1.0]},
        averaged={"l1": [0.0, 0.3], "l2": [0.0, 1.0], "alpha": [1.0], "beta": [1.0]},
        resumed=[{"l1": 0.3, "l2": 0.1}],
    ),
    "one-pass": RuleCase(  # core/test_one_pass.py compares it with its oracle
        resumed=[{"lanes": 12, "cut": 0.001}, {"lanes": 4, "cut": 0.01, "target_nnz": 3}],
    ),
    "adagrad": RuleCase(
        oracle=adagrad,
        drawn={
            "l1": [0.0, 0.0107, 0.103],
            "alpha": [0.11, 0.53],
            "delta": [0.01, 1.0],
            "fading": [False, True],
        },
        lanes={"l1": [0.0, 0.005, 0.05], "alpha": [0.1, 1.0], "delta": [0.5, 1.0]},
        averaged={"l1": [0.0, 0.02, "auto"], "alpha": [0.3, 1.0], "delta": [1.0]},
        part=AdaGradPart,
        resumed=[{"l1": 0.02, "alpha": 0.5}, {"l1": 0.02, "alpha": 0.5, "fading": True}],
    ),
    "dual-averaging": RuleCase(
        oracle=dual_averaging,
        drawn={
            "l1": [0.0, 0.0107, 0.103],
            "boost": [0.0, 0.0213],
            "strength": [1.07, 5.3],
            "relative": [False, True],
            "fading": [False, True],
        },
        lanes={"l1": [0.0, 0.01], "strength": [1.0, 3.0]},
        averaged={"l1": [0.01, "auto"], "strength": [1.0, "auto"], "boost": [0.0, 0.1]},
        resumed=[{"l1": 0.02, "strength": 0.5, "relative": True}],
    ),
    "margin-perceptron": RuleCase(
        lanes={
            "l1": [0.0, 0.01],
            "margin": [0.5, 1.0],
            "eta0": [0.1, 1.0],
            "shrink": ["row", "all"],
        },
        averaged={"margin": [0.0, 1.0], "l1": [0.0, 0.05], "shrink": ["touched", "all"]},
        resumed=[
            {"l1": 0.02, "loss": "margin", "shrink": "touched"},
            {"l1": 0.02, "loss": "margin", "shrink": "all"},
        ],
    ),
    "mirror-descent": RuleCase(
        averaged={
            "l1": [0.0, 0.01],
            "p": [2.0, 3.5],
            "threshold": ["paper", "scaled"],
            "eta0": [0.3],
        },
        resumed=[
            {"p": 3.7, "l1": 0.02},
            {"p": 3.7, "l1": 0.02, "relative": True, "eta0": 0.5, "schedule": "sqrt"},
        ],
    ),
}


def draw_values(draw: st.DrawFn, values: Values) -> dict[str, Any]:
    """Draw one of the values of each parameter."""
    return {name: draw(st.sampled_from(allowed)) for name, allowed in values.items()}
