"""`thresher merge`: the mean of models that learned different rows."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.cli.render.output import show
from thresher.cli.steps.check_outputs import check_outputs
from thresher.errors import ParameterError
from thresher.model.merge import merge as merged


def merge(models: Sequence[str], path: str, weights: str | None, quiet: bool) -> int:
    """Merge the models, and write the result; return the exit code."""
    check_outputs({"--model": path}, {})
    found = merged(models, None if weights is None else _numbers(weights))
    found.save(path)
    if not quiet:
        rows = f"{found.history[-1].examples:,} examples, " if found.history else ""
        show(f"{len(models)} models, {rows}{found.nnz:,} nonzero weights -> {path}")
    return 0


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ParameterError(
            parameter="weights", value=text, allowed="numbers with commas between them, as in 1,3"
        ) from None
