"""Which features of a row a model has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.dict_features import features_of
from thresher.data.features import key_of
from thresher.model.model import Model
from thresher.model.one_row import reading_of

_KEPT = 1 << 16  # answers that are kept, by the text of the feature


class KnownFeatures:
    """Looks up whether a model has a feature.

    A model has the features whose weight is not zero, the number columns of the table or frame it
    was trained on, and the indicators of missing cells of its columns. It does
    not keep other features that training saw.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.keys = np.unique(model.indices)
        self._reading = None
        if not json.loads(str(model.parameters.get("interactions") or "[]")):
            self._reading = reading_of(model)
        bits = model.parameters.get("bits")
        self._mask = (1 << bits) - 1 if bits else 2**64 - 1
        columns = json.loads(str(model.parameters.get("frame_columns") or "[]"))
        kinds = json.loads(str(model.parameters.get("kinds") or "{}"))
        self._columns = {name.encode() for name in columns}
        self._columns |= {n.encode() for n, kind in kinds.items() if kind in ("number", "truth")}
        if self._reading is not None and self._reading.missing == "indicator":
            self._columns |= {f"{name}^missing".encode() for name in kinds}
        self._found: dict[str, bool] = {}

    def unknown_in(self, row: Mapping[Any, Any]) -> list[str]:
        """Return the features of a dict that the model does not have, in their order."""
        assert self._reading is not None
        if self._reading.converts:
            row = self._reading.converted(row)
        found, unknown = self._found, []
        for name, value in row.items():
            kind = type(value)
            if kind is float or kind is int:
                words = [name]
            elif kind is str:
                words = [f"{name}^{value}"]
            else:
                words = [f.decode(errors="replace") for f, _ in features_of(0, name, value)]
            for word in words:
                known = found.get(word)
                if known is None:
                    known = self._knows(word.encode())
                    if len(found) < _KEPT:
                        found[word] = known
                if not known:
                    unknown.append(word)
        return unknown

    def has(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Tell of each key whether the model has a weight for it."""
        if not len(self.keys):
            return np.zeros(len(keys), bool)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.asarray(self.keys[places] == keys)

    def _knows(self, feature: bytes) -> bool:
        if feature in self._columns:
            return True
        key = self._key(feature)
        return key is not None and bool(self.has(np.array([key], np.uint64))[0])

    def _key(self, feature: bytes) -> int | None:
        assert self._reading is not None
        numbered = self._reading.numbered
        if numbered:
            text = feature.decode(errors="replace")
            return numbered.get(text, numbered.get(text.replace("^", "=", 1)))
        return key_of(feature) & self._mask
