"""The columns of a table that a model's features are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from thresher.data.features import key_of
from thresher.errors import ParameterError, setting
from thresher.export.refusals import check_names_differ

if TYPE_CHECKING:
    from thresher.model.model import Model

__all__ = ["Column", "columns_of"]


@dataclass
class Column:
    """A column of a table, and the weights of its features in one output.

    Attributes
    ----------
    name : str
    kind : {"number", "truth", "string"}
    weight : float
        Weight of its value, if it holds numbers or booleans.
    cases : dict of str to float
        Weights of its values, if it holds strings.
    missing : float
        Weight of a missing cell.
    """

    name: str
    kind: str
    weight: float = 0.0
    cases: dict[str, float] = field(default_factory=dict)
    missing: float = 0.0


def columns_of(model: Model, names: Sequence[str] | None) -> list[list[Column]]:
    """Return the columns with weights, for each output.

    Parameters
    ----------
    model : Model
    names : sequence of str, optional
        Names of all features, if they are columns of numbers.
    """
    reading = _Features(model, names)
    if not reading.kinds:
        check_names_differ([reading.name(key) for key in np.unique(model.indices).tolist()])
    outputs = []
    for output in range(len(model.intercept)):
        found: dict[str, Column] = {}
        for at in range(int(model.indptr[output]), int(model.indptr[output + 1])):
            reading.add(found, int(model.indices[at]), float(model.weights[at]))
        outputs.append(reading.ordered(found))
    _check_names({column.name for columns in outputs for column in columns})
    return outputs


class _Features:
    """Finds the column of each feature of a model."""

    def __init__(self, model: Model, names: Sequence[str] | None) -> None:
        self.model = model if names is None else model.named(names)
        reading = model.parameters
        self.kinds: Mapping[str, str] = (
            {} if names is not None else json.loads(str(reading.get("kinds") or "{}"))
        )
        self.text = set(json.loads(str(reading.get("text") or "[]")))
        self.missing = reading.get("missing")
        first = reading.get("first")
        self.first = first if isinstance(first, int) else 0
        self.hashed = model.n_features == 2**64 or bool(self.kinds)
        if json.loads(str(reading.get("interactions") or "[]")):
            raise ParameterError(
                "the model was trained with interactions of namespaces, which are not columns"
            )
        if self.hashed and reading.get("bits"):
            raise ParameterError(
                f"names of features were hashed to {reading['bits']} bits: features that share a "
                "weight cannot be told apart in SQL",
                hint="train without bits",
            )

    def name(self, key: int) -> str:
        """Return the name of a feature; x and its number, if it has none."""
        name = self.model.name(key)
        if isinstance(name, str):
            return name
        if self.hashed:
            raise ParameterError(
                f"feature {name} has no name: SQL needs the names of columns",
                hint="train with the option names, or give names of all features",
            )
        return f"x{name + self.first}"

    def add(self, found: dict[str, Column], key: int, weight: float) -> None:
        """Add a feature and its weight to the columns."""
        name = self.name(key)
        if not self.kinds:
            found[name] = Column(name, "number", weight)
            return
        if self.kinds.get(name) in ("number", "truth"):
            column = found.setdefault(name, Column(name, self.kinds[name]))
            column.weight = weight
            return
        owner, value = self._split(key, name)
        column = found.setdefault(owner, Column(owner, self.kinds[owner]))
        if self.kinds[owner] == "string":
            column.cases[value] = weight
        if value == "missing" and self.missing == "indicator":
            column.missing = weight

    def ordered(self, found: Mapping[str, Column]) -> list[Column]:
        """Return columns in the order of the table that the model was trained on."""
        if not self.kinds:
            return list(found.values())
        for column in found.values():
            column.cases = dict(sorted(column.cases.items()))
        return [found[name] for name in self.kinds if name in found]

    def _split(self, key: int, name: str) -> tuple[str, str]:
        """Return the column and the value of a feature named "column=value"."""
        owners = [
            owner
            for owner in self.kinds
            if name.startswith(f"{owner}=")
            and key_of(f"{owner}^{name[len(owner) + 1 :]}".encode()) == key
        ]
        if owners and owners[0] not in self.text:
            return owners[0], name[len(owners[0]) + 1 :]
        text = [owner for owner in self.text if name.startswith(f"{owner}^")]
        what = f"is a word of the text column '{text[0]}'" if text else "is not a cell of a column"
        raise ParameterError(
            f"feature {name!r} {what}, which is not an expression of SQL",
            hint=(setting("to_onnx"), " takes features by name"),
        )


def _check_names(names: set[str]) -> None:
    """Raise ParameterError if two names differ in case only: SQL does not tell them apart."""
    seen: dict[str, str] = {}
    for name in sorted(names):
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise ParameterError(
                f"the columns {other!r} and {name!r} differ only in upper and lower case, which "
                "most databases do not tell apart"
            )
