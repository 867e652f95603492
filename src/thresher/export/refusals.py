"""What a form cannot represent is refused, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thresher.errors import ParameterError
from thresher.losses import LOSSES

if TYPE_CHECKING:
    from thresher.model.model import Model

__all__ = ["check_linear", "check_names_differ"]

_ANY_FORM = "to_frame, to_json and to_csv write any model"


def check_linear(model: Model, form: str) -> None:
    """Raise ParameterError unless a model is a linear score with a link per output.

    Parameters
    ----------
    model : Model
    form : str
        The form that cannot represent other models, for the message.
    """
    if model.multilabel:
        raise ParameterError(
            f"the model is for rows with any number of labels, which {form} cannot represent",
            hint=_ANY_FORM,
        )
    if LOSSES[model.loss].scales_rows:
        raise ParameterError(
            f"the loss {model.loss} divides each row by the square root of its number of nonzero "
            f"values, which {form} cannot represent",
            hint=_ANY_FORM,
        )
    if model.classes is not None and len(model.classes) < 2:
        raise ParameterError(
            f"the model has seen only the class {model.classes.tolist()[0]!r}; {form} needs two"
        )


def check_names_differ(names: Sequence[str]) -> None:
    """Raise ParameterError if two features have the same name.

    Parameters
    ----------
    names : sequence of str
    """
    known: set[str] = set()
    for name in names:
        if name in known:
            raise ParameterError(
                f"two features are named {name!r}: it is not known which is meant",
                hint="give names of all features that differ",
            )
        known.add(name)
