"""What a run has learned, as a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from thresher.data.reading import Stopped
from thresher.model import Model, Output
from thresher.training.learning import Learning
from thresher.training.passes import Run


def outputs_of(learning: Learning) -> list[Output]:
    """Return what each output has learned."""
    return learning.learners.outputs(learning.average, learning.target)


def names_of(
    run: Run, outputs: list[Output], kinds: Mapping[str, str] | None = None
) -> dict[int, str] | None:
    """Return the names of the features with nonzero weights, where they have any.

    `kinds` is that of `Source.blocks`.
    """
    if not run.source.named:
        return None
    keys = outputs[0].keys.tolist()
    if len(outputs) > 1:
        keys = np.unique(np.concatenate([output.keys for output in outputs])).tolist()
    if run.names is not None:
        known = run.names.names()
        found = {key: known[key] for key in keys if key in known}
    else:
        try:
            found = run.source.names(keys, kinds)
        except Stopped:
            run.interrupt()
    return found or None


def model_of(run: Run, named: bool = True, **described: Any) -> Model:
    """Return the model.

    Parameters
    ----------
    run : Run
    named : bool
        Whether names are looked for, by reading once more what can be.
    **described
        What the model says of its parameters besides.
    """
    learning = run.learning
    outputs = outputs_of(learning)
    parameters: Mapping[str, Any] = {
        "rule": learning.rule,
        **learning.params,
        "passes": run.plan.passes,
        **described,
    }
    return Model.of(
        outputs,
        n_features=learning.width or 2**64,
        classes=learning.labels.classes,
        loss=learning.words["loss"],
        parameters=parameters,
        history=tuple(learning.history),
        names=names_of(run, outputs) if named else None,
    )
