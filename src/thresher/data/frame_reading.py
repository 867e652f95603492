"""How a model reads a frame: with the options, kinds and columns of its training."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from thresher.data.frames import columns_of, opened, outside, select
from thresher.data.read_options import ReadOptions
from thresher.data.source import Source
from thresher.errors import DataWarning, ParameterError

__all__ = ["NewColumnsWarning", "by_name", "reading_for", "reads_tables", "source_for"]

_USUAL = ("label", "y", "target", "class")  # a file has its labels there by default


class NewColumnsWarning(DataWarning):
    """A frame has columns that the training data did not have; they are left out."""


def reads_tables(parameters: Mapping[str, Any]) -> bool:
    """Tell whether a model was trained on tables or on a frame with words."""
    return bool(parameters.get("kinds"))


def reading_for(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `scan` for rows to predict: those of the training.

    Parameters
    ----------
    parameters : mapping
        The parameters of a model, or the result of `Source.described`.
    """
    found = {
        name: parameters[name]
        for name in ("bits", "multilabel", "label", "weight", "ngrams", "missing", "dates")
        if name in parameters
    }
    for name in ("text", "ignore"):
        found[name] = tuple(json.loads(str(parameters.get(name) or "[]")))
    return found | {"labelled": False}


def source_for(parameters: Mapping[str, Any], frame: Any) -> Source:
    """Return a frame as the source of a model that was trained on tables or on a frame.

    Columns are found by their names, in any order. Missing columns raise ParameterError; new ones
    are left out, with a warning.

    Parameters
    ----------
    parameters : mapping
        The parameters of a model, or the result of `Source.described`.
    frame : frame
    """
    from thresher.data.frame_parts import frame_source

    frame = opened(frame)
    options = reading_for(parameters)
    kinds = json.loads(str(parameters.get("kinds") or "{}"))
    given = parameters.get("frame_columns")
    known = json.loads(str(given)) if given else _features(kinds, options)
    others = [] if given else [name for name in map(str, columns_of(frame)) if name not in known]
    frame = by_name(frame, [*known, *others], _unused(options))
    # Without a label column, none is looked for: it could be a feature.
    return frame_source(frame, ReadOptions.of(**options | {"label": options.get("label") or ""}))


def _features(kinds: Mapping[str, str], options: Mapping[str, Any]) -> list[str]:
    """Return the columns of features of tables whose columns have these kinds."""
    usual = () if options.get("label") else _USUAL
    return [name for name in kinds if name not in (*_unused(options), *usual)]


def _unused(options: Mapping[str, Any]) -> list[str]:
    labels = str(options.get("label") or "").split(",")
    return [name for name in (*options["ignore"], *labels, options.get("weight")) if name]


def by_name(
    frame: Any,
    needed: Sequence[str],
    unused: Sequence[str] = (),
    known: Sequence[str] | None = None,
) -> Any:
    """Return an opened frame with the needed columns, in this order.

    Raises ParameterError if one is missing. Warns of columns that are neither known nor unused.

    Parameters
    ----------
    frame : opened frame
    needed : sequence of str
    unused : sequence of str
        Columns that are left out without a warning, such as that of labels.
    known : sequence of str, optional
        All columns of the training data; by default the needed ones.
    """
    known = needed if known is None else known
    names = {str(name): name for name in columns_of(frame)}
    missing = [name for name in known if name not in names]
    if not names.keys() >= {*needed}:
        missing = missing or [name for name in needed if name not in names]
        raise ParameterError(
            f"{_listed(missing, 'missing')}: the training data had {_them(missing)}, and the frame "
            f"has the columns {_quoted(list(names))}"
        )
    new = [name for name in names if name not in {*known, *unused}]
    if new:
        also = f"; {_listed(missing, 'missing')}, with weight 0 in the model" if missing else ""
        message = NewColumnsWarning(
            f"{_listed(new, 'new')}: the training data did not have {_them(new)}{also}",
            hint="new columns are left out",
        )
        warnings.warn(message, stacklevel=outside())
    chosen = [names[name] for name in needed]
    return frame if chosen == columns_of(frame) else select(frame, chosen)


def _listed(names: Sequence[str], what: str) -> str:
    one = len(names) == 1
    return f"{'column' if one else 'columns'} {_quoted(names)} {'is' if one else 'are'} {what}"


def _them(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:20]) + (", ..." if len(names) > 20 else "")
