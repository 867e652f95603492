"""Rows given as dicts, and estimators to learn them with, for tests of one row at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from thresher.estimators import estimator_class
from thresher.rules import RULES

_NAMES = st.sampled_from(["age", "a^ad_1", "12", "0012", "größe", "x", "", "price"])
_NUMBERS = st.floats(-100, 100, width=32) | st.integers(-1000, 1000) | st.booleans()
_WORDS = st.lists(st.sampled_from(["a", "b", "ß", ""]), max_size=4)
VALUES = _NUMBERS | st.sampled_from(["red", "blue", "12"]) | st.none() | _WORDS
ROWS = st.dictionaries(_NAMES | st.integers(0, 40), VALUES, max_size=6)


def rows_of_words(count: int, seed: int = 0) -> list[dict[Any, Any]]:
    """Return rows with all types of values."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        chosen = rng.choice(40, size=rng.integers(0, 8), replace=False)
        row: dict[Any, Any] = {f"f{i}": round(float(rng.normal()), 3) for i in chosen}
        row["colour"] = ["red", "blue", None][rng.integers(3)]
        row["text"] = [str(word) for word in rng.choice(["a", "b", "c"], size=4)]
        row[7] = int(rng.integers(9))
        rows.append(row)
    return rows


def cases() -> list[Any]:
    """Return estimator classes and parameters of rules that learn row by row.

    Also a number of rows: a record is made after 128 rows, with the first loss of each rule.
    """
    found = []
    for name, rule in RULES.items():
        if not rule.streams or rule.needs_width:
            continue
        for task in rule.tasks:
            losses = [loss for loss in rule.losses_for(task) if loss not in rule.refused_losses]
            for loss in losses:
                chosen = {"loss": loss} if len(rule.losses) > 1 else {}
                rows = 135 if loss == losses[0] else 20
                found.append((estimator_class(name, task), chosen, rows))
    return found


def saved_bytes(estimator: Any, folder: Any) -> bytes:
    """Return the file of the estimator's model, without times."""
    model = estimator.model_
    history = tuple(record._replace(seconds=0.0) for record in model.history)
    replace(model, history=history).save(folder / "model")
    return bytes((folder / "model").read_bytes())


def equal(one: Any, other: Any, folder: Any) -> bool:
    """Tell whether two estimators have the same learners, classes and model, to the bit."""
    return (
        one.state_.outputs.states() == other.state_.outputs.states()
        and saved_bytes(one, folder) == saved_bytes(other, folder)
        and one.n_iter_ == other.n_iter_
    )
