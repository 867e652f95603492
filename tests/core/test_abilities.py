"""What only some rules can do: the others refuse with an error that says what they cannot do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.streams import learner
from thresher import _core

KEYS, NUMBERS = np.zeros(1, np.uint64), np.zeros(1)

# Ability: what the error says, a call that needs it, and the rules that have it.
ABILITIES: dict[str, tuple[str, Callable[[_core.Learner], Any], set[str]]] = {
    "widen": (
        "take more features",
        lambda model: model.widen(9),
        {"truncated", "truncated averaged", "averaged", "centred", "ftrl", "dual", "perceptron"},
    ),
    "start": (
        "start from given weights",
        lambda model: model.start_from(KEYS, NUMBERS, 0.0),
        {"truncated", "truncated averaged"},
    ),
    "center": ("centre", lambda model: model.center(KEYS, NUMBERS), {"centred"}),
    "steer": (
        "steer to a number of nonzero weights",
        lambda model: model.steer(),
        {"truncated", "truncated averaged", "ftrl"},
    ),
    "pause": ("pause", lambda model: model.pause_at(3), {"perceptron"}),
    "rounds": (
        "be averaged",
        lambda model: model.begin_round(),
        {"truncated", "truncated averaged", "averaged", "ftrl", "dual", "perceptron", "mirror"},
    ),
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "truncated": ("truncated_gradient", {}),
    "truncated averaged": ("truncated_gradient", {"average": True}),
    "averaged": ("averaged_sgd", {}),
    "centred": ("averaged_sgd", {"center": True}),
    "ftrl": ("ftrl", {}),
    "dual": ("dual_averaging", {}),
    "perceptron": ("margin_perceptron", {"loss": "margin"}),
    "mirror": ("mirror_descent", {}),
}


@pytest.mark.parametrize("store", ["dense", "hashed"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ability", ABILITIES)
def test_abilities(ability: str, name: str, store: str) -> None:
    message, call, rules = ABILITIES[ability]
    rule, params = MODELS[name]
    model = learner(rule, 4, store=store, **params)
    if name in rules:
        call(model)
    else:
        with pytest.raises(ValueError, match=f"^this rule cannot {message}"):
            call(model)
    assert not model.paused
    assert (model.numbers_per_feature > 0) == (name in ABILITIES["rounds"][2])
