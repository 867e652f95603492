"""How a model was trained: its records, and the search that chose it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from thresher.model.history import OBJECTIVES, merge_short_records, runs_of
from thresher.report.charts import lines
from thresher.report.page import note

if TYPE_CHECKING:
    from thresher.model.model import Model

_LOG_FROM = 50  # the scale is logarithmic if last / first number of examples is larger


def curves(model: Model) -> str:
    """Return charts of loss and nonzeros over the examples learned.

    Parameters
    ----------
    model : Model
    """
    history = model.history
    if not history:
        return note(
            "There are no records of training: the model is from a search, or was not made by "
            "training."
        )
    examples = [record.examples for record in history if record.examples > 0]
    log_x = len(examples) > 1 and examples[-1] > _LOG_FROM * examples[0]
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
        remark = "The objective is measured after each pass."
    else:
        remark = (
            "The progressive loss is the mean over the rows since the point before; each row is "
            "predicted before it is learned."
        )
    if len(runs_of(every)) > 1:
        remark += " Classes were learned one after the other; each has its own line."
    if drawn["validation loss"]:
        remark += " The model of the pass with the least validation loss was kept."
    if any(not math.isfinite(record.loss) for record in history):
        remark += " Losses that are not finite are not shown."
    return f'<div class="charts">{"".join(parts)}</div>\n{note(remark)}'


def search(model: Model) -> str:
    """Return the search that chose the model; without a search, say how to make one.

    Parameters
    ----------
    model : Model
    """
    if model.frontier is None:
        return note(
            "This model is not from a search. SparsityPath and OnePassSearchCV in Python, and "
            "thresher tune in a shell, show error against nonzeros for many settings."
        )
    from thresher.report.frontier import chart

    frontier, this = model.frontier.frontier, model.frontier.dots[model.frontier.at]
    spread = "" if this.spread is None else f" +- {this.spread:.2g}"
    weights = f"{this.nonzeros:,.6g} nonzero weights"
    if this.nonzeros != model.nnz:
        weights += f" (mean over folds); this model, trained on all rows, has {model.nnz:,}"
    return chart(frontier, model.frontier.at) + note(
        f"One of {len(frontier):,} models of a search: {this.name}, {frontier.measure} "
        f"{this.error:.4g}{spread} with {weights}. Bars are standard errors over folds, if there "
        f"were folds."
    )
