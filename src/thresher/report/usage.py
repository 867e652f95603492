"""Examples of how to load and use a model; they run without changes."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from thresher.losses import PROBABILITY_LOSSES
from thresher.report.page import text
from thresher.report.summary import ANY, listed

if TYPE_CHECKING:
    from thresher.model.model import Model

_FILE = "model.thresher"  # if the file of the model is not known


def python(model: Model, file: str | None = None) -> str:
    """Return Python code that loads and uses the model.

    Parameters
    ----------
    model : Model
    file : str, optional
        File of the model.
    """
    lines = ["import thresher", "", f"model = thresher.load({file or _FILE!r})"]
    if model.n_features == ANY or "first" in model.parameters:
        lines.append(f"X = thresher.scan({', '.join([repr(_rows(model)), *_options(model)])})")
    else:
        lines.insert(0, "from scipy.sparse import csr_matrix")
        lines.append(f"X = csr_matrix((1, {model.n_features}))  # your rows, with these columns")
    lines.append("print(model.predict(X)[:5])")
    if model.classes is not None and model.loss in PROBABILITY_LOSSES and not model.multilabel:
        lines.append("print(model.predict_proba(X)[:5])")
    lines.append("print(model.top(10))")
    return "\n".join(lines)


def shell(model: Model, file: str | None = None) -> str:
    """Return shell commands that use the model.

    Parameters
    ----------
    model : Model
    file : str, optional
        File of the model.
    """
    name, rows = shlex.quote(file or _FILE), _rows(model)
    kind = ""
    if model.classes is not None and model.loss in PROBABILITY_LOSSES:
        kind = " --as probability"
    return "\n".join(
        [
            f"thresher predict {name} {rows} -o predictions.txt",
            *([f"thresher predict {name} {rows}{kind}"] if kind else []),
            f"thresher inspect {name} --top 10",
        ]
    )


def snippets(model: Model, file: str | None = None) -> str:
    """Return Python code and shell commands as HTML.

    Parameters
    ----------
    model : Model
    file : str, optional
        File of the model.
    """
    rows = _rows(model)
    first = "" if file else f"<p>After <code>model.save({text(repr(_FILE))})</code>:</p>\n"
    name = "" if file is None else f"<p>The model is in <code>{text(os.fspath(file))}</code>.</p>\n"
    return (
        f"{first}{name}<h3>Python</h3>\n<pre><code>{text(python(model, file))}</code></pre>\n"
        f"<h3>Shell</h3>\n<pre><code>{text(shell(model, file))}</code></pre>\n"
        f'<p class="note">Replace <code>{text(rows)}</code> by your own rows: '
        f"{text(_form(model))}.</p>"
    )


def _rows(model: Model) -> str:
    """Return a file name for rows in the format of the training rows."""
    kind = model.parameters.get("format")
    if model.parameters.get("kinds") or kind in ("csv", "parquet", "arrow"):
        return f"rows.{kind if kind in ('parquet', 'arrow') else 'csv'}"
    known = model.parameters
    named = known.get("first") == 0 and not known.get("zero_based")
    return "rows.vw" if model.n_features == ANY or named else "rows.svm"


def _form(model: Model) -> str:
    rows = _rows(model)
    if rows == "rows.vw":
        return "VW text, as in training"
    if rows == "rows.svm":
        first = 0 if model.parameters.get("zero_based") else 1
        return f"svmlight text with features numbered from {first}" + (
            " (column 0 of a matrix is feature 1)" if "first" not in model.parameters else ""
        )
    return "a table with the columns of the training rows"


def _options(model: Model) -> list[str]:
    """Return the arguments of `scan` that read rows as in training."""
    known, options = model.parameters, []
    for name in (
        *("bits", "zero_based", "multilabel", "label", "weight", "ngrams"),
        *("delimiter", "encoding", "label_separator"),
    ):
        if known.get(name) not in (None, False, "") and (name, known[name]) != ("ngrams", 1):
            options.append(f"{name}={known[name]!r}")
    for name in ("header", "quotes"):
        if known.get(name) is not None:
            options.append(f"{name}={known[name]}")
    for name in ("interactions", "text", "ignore", "columns"):
        if listed(known.get(name)):
            options.append(f"{name}={listed(known[name])!r}")
    return [*options, "labelled=False"]
