"""The report of a model: one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.atomic import write_whole
from thresher.data import is_source
from thresher.errors import DataError, ParameterError
from thresher.report.features import FeatureNames, classes, features, meaning
from thresher.report.health import certified, numbers
from thresher.report.learning import curves, search
from thresher.report.page import Section, fragment, note, page
from thresher.report.rows import results, scored_rows
from thresher.report.summary import about, headline, parameters, task_of
from thresher.report.usage import snippets

if TYPE_CHECKING:
    from thresher.model.model import Model

_NOTEBOOK_WEIGHTS = 10


def model_page(
    model: Model,
    X: Any = None,
    y: Any = None,
    *,
    names: Sequence[str] | None = None,
    title: str | None = None,
    file: str | None = None,
) -> str:
    """Return the report of a model, as `Model.report` writes it.

    Parameters
    ----------
    model : Model
    X, y : rows and their labels, or a source and None; optional
    names : sequence of str, optional
        Names of all features.
    title : str, optional
    file : str, optional
        File of the model, for the examples that load it.

    Examples
    --------
    >>> from thresher import FTRLClassifier
    >>> from thresher.report.model_page import model_page
    >>> model = FTRLClassifier().fit([[0.0, 1.0], [1.0, 0.0]] * 20, ["no", "yes"] * 20).model_
    >>> html = model_page(model, names=["price", "colour"])
    >>> "price" in html, "https://" in html
    (True, False)
    """
    if y is not None and X is None:
        raise ParameterError("y must be given with X")
    if X is not None and not is_source(X) and np.shape(X)[0] == 0:
        raise DataError("X has no rows")
    feature_names = FeatureNames(model, names)
    rule = str(model.parameters.get("rule", "model"))
    sections = [Section("", headline(model)), Section("Model", about(model) + parameters(model))]
    if X is not None and (y is not None or is_source(X)):
        found = results(model, scored_rows(model, X, y))
        sections.append(Section("Predictions of the given rows", found, "rows"))
    sections += [
        *([Section("Classes", classes(model, feature_names))] if len(model.intercept) > 1 else []),
        Section("Features", meaning(model) + features(model, feature_names), "features"),
        Section("Learning", curves(model)),
        Section("Frontier", search(model)),
        Section("Numerical health", numbers(model, X, y), "health"),
        Section("Certificates", certified(model)),
        Section("How to use the model", snippets(model, file), "use"),
    ]
    lead = f"{rule}, {model.loss} loss, {task_of(model)}."
    return page(title or f"{rule}: {model.nnz:,} nonzero weights", sections, lead)


def write(model: Model, path: str | PathLike[str], *rows: Any, **options: Any) -> None:
    """Write the report of a model to a file; the file is replaced in one step.

    Parameters
    ----------
    model : Model
    path : path
    *rows, **options
        Arguments of `model_page`.
    """
    write_whole(path, model_page(model, *rows, **options).encode())


def model_fragment(model: Model) -> str:
    """Return a short description of a model, for a notebook.

    Parameters
    ----------
    model : Model
    """
    rule = str(model.parameters.get("rule", "model"))
    lead = note(f"{rule}, {model.loss} loss, {task_of(model)}")
    largest = features(model, FeatureNames(model, None), _NOTEBOOK_WEIGHTS, search=False)
    return fragment("\n".join([lead, headline(model), largest]))
