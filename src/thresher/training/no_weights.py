"""The warning that all weights are zero."""

from __future__ import annotations

NO_WEIGHTS = "all weights are zero"


def without_weights(owner: str, penalty: str | None = "penalty") -> str:
    """Return the text of the warning that all weights are zero.

    `penalty` is None if the rule has none.
    """
    if penalty is None:
        return f"{owner}: {NO_WEIGHTS}; the targets are constant, or do not depend on the features"
    return (
        f"{owner}: {NO_WEIGHTS}; lower the penalty, or scale the rows "
        f"(thresher.health.check examines them)"
    )
