"""How a model came about: its records, and the search that it was chosen by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from thresher.model.history import OBJECTIVES, merge_short_records, runs_of
from thresher.report.charts import lines
from thresher.report.page import note

if TYPE_CHECKING:
    from thresher.model.model import Model

_WIDE = 50  # times from the first record to the last, from which on a scale is logarithmic


def curves(model: Model) -> str:
    """Return loss and nonzeros over the examples learned.

    Parameters
    ----------
    model : Model
    """
    history = model.history
    if not history:
        return note(
            "There is no record of training: the model was learned beside others in a search, or "
            "made by hand."
        )
    examples = [record.examples for record in history if record.examples > 0]
    log_x = len(examples) > 1 and examples[-1] > _WIDE * examples[0]
    solver = model.parameters.get("rule") in OBJECTIVES
    loss = "objective" if solver else "progressive loss"
    every = [float(record.examples) for record in history]
    shown = merge_short_records(every, [record.loss for record in history]).tolist()
    drawn = {
        loss: list(zip(every, shown, strict=True)),
        "validation loss": [
            (float(r.examples), r.valid_loss) for r in history if r.valid_loss is not None
        ],
    }
    counts = [(float(r.examples), float(r.nonzeros)) for r in history if r.nonzeros is not None]
    parts = [lines(drawn, x="examples", y="loss", log_x=log_x, title="Loss")]
    if counts:
        parts.append(
            lines(
                {"nonzero weights": counts},
                x="examples",
                y="nonzero weights",
                log_x=log_x,
                title="Nonzero weights",
            )
        )
    if solver:
        said = "The objective is that after each pass."
    else:
        said = (
            "The progressive loss is the mean over the rows since the point before, each scored "
            "before it was learned from."
        )
    if len(runs_of(every)) > 1:
        said += " Classes were learned one after the other, and each has its line."
    if drawn["validation loss"]:
        said += " The model of the pass with the least validation loss was kept."
    if any(not math.isfinite(record.loss) for record in history):
        said += " Losses that are not finite are left out."
    return f'<div class="charts">{"".join(parts)}</div>\n{note(said)}'


def search(model: Model) -> str:
    """Return the search that the model was chosen by; where there was none, how to make one.

    Parameters
    ----------
    model : Model
    """
    if model.frontier is None:
        return note(
            "This model did not come from a search: SparsityPath and OnePassSearchCV in Python, "
            "or thresher tune in a shell, show error against nonzeros for many settings at once."
        )
    from thresher.report.frontier import chart

    frontier, this = model.frontier.frontier, model.frontier.dots[model.frontier.at]
    spread = "" if this.spread is None else f" +- {this.spread:.2g}"
    weights = f"{this.nonzeros:,.6g} nonzero weights"
    if this.nonzeros != model.nnz:
        weights += f" in the mean over folds; this model, of all rows, has {model.nnz:,}"
    return chart(frontier, model.frontier.at) + note(
        f"One of {len(frontier):,} models of a search: {this.name}, {frontier.measure} "
        f"{this.error:.4g}{spread} at {weights}. Bars are standard errors over folds, where there "
        f"were folds."
    )
