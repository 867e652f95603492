"""Lines of `thresher predict --explain`: predictions with their largest contributions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.block import Block
from thresher.losses import LOSSES
from thresher.model.contributions import RowContributions, contributions, entries_of_block
from thresher.model.links import labels, values
from thresher.model.model import Model
from thresher.printable import printable


class ExplainedRows:
    """Writes a line for each row: its prediction, and the features that contribute most.

    Parameters
    ----------
    model : Model
    count : int
        Contributions of a line.
    as_json : bool
        Whether a line is a JSON object, else text: the prediction, and after a tab each
        ``name:contribution``.
    """

    def __init__(self, model: Model, count: int, as_json: bool) -> None:
        self.model, self.count, self.as_json = model, count, as_json
        self._shift = LOSSES[model.loss].decision_at if model.classes is not None else 0.0
        first = model.parameters.get("first")  # number of the first feature in the files
        self._first = first if isinstance(first, int) else 0

    def lines(self, block: Block, raw: NDArray[np.float64], predicted: list[str]) -> list[str]:
        """Return the lines of a block.

        Parameters
        ----------
        block : Block
        raw : array of shape (rows, outputs)
            Its raw predictions.
        predicted : list of str
            The lines without contributions.
        """
        outputs = raw.argmax(axis=1)
        found = contributions(self.model, entries_of_block(block), outputs).largest(self.count)
        ends = np.searchsorted(found.rows, np.arange(block.rows + 1)).tolist()
        if not self.as_json:
            parts = self._texts(found)
            return [
                "\t".join([line.replace("\t", "\\t"), *parts[ends[row] : ends[row + 1]]])
                for row, line in enumerate(predicted)
            ]
        terms, tags = self._objects(found), block.tags
        scores = raw - self._shift
        lines = []
        for row, prediction in enumerate(self._predictions(scores)):
            k = int(outputs[row])
            facts = {
                "prediction": prediction,
                **({} if tags is None else {"tag": tags[row]}),
                "label": self._label(k),
                "score": float(scores[row, k]),
                "intercept": float(self.model.intercept[k] - self._shift),
                "contributions": terms[ends[row] : ends[row + 1]],
            }
            lines.append(json.dumps(facts))
        return lines

    def _names(self, found: RowContributions) -> list[str | int]:
        names = [self.model.name(key) for key in found.keys.tolist()]
        return [name + self._first if isinstance(name, int) else name for name in names]

    def _texts(self, found: RowContributions) -> list[str]:
        pairs = zip(self._names(found), found.amounts.tolist(), strict=True)
        return [f"{printable(name)}:{amount:+.6g}" for name, amount in pairs]

    def _objects(self, found: RowContributions) -> list[dict[str, Any]]:
        fields = ("name", "weight", "value", "contribution")
        columns = (found.weights.tolist(), found.values.tolist(), found.amounts.tolist())
        rows = zip(self._names(found), *columns, strict=True)
        return [dict(zip(fields, row, strict=True)) for row in rows]

    def _label(self, output: int) -> Any:
        classes = self.model.classes
        if classes is None:
            return None
        several = len(self.model.intercept) > 1 or self.model.multilabel
        return classes.tolist()[output if several else -1]

    def _predictions(self, scores: NDArray[np.float64]) -> list[Any]:
        """Return what `Model.predict_one` returns for each row."""
        classes = self.model.classes
        if classes is not None and self.model.multilabel:
            known = classes.tolist()
            return [[known[k] for k in np.flatnonzero(row >= 0)] for row in scores]
        decision = scores[:, 0] if scores.shape[1] == 1 else scores
        found: list[Any]
        if classes is None:
            found = values(decision, self.model.loss).tolist()
        else:
            found = labels(decision, classes).tolist()
        return found
