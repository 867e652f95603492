"""The explanation of one prediction: what each feature adds to the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from thresher.data.new_frames import frame_of
from thresher.errors import ParameterError
from thresher.printable import printable

__all__ = ["Contribution", "Explanation"]

_SHOWN = 20  # contributions in the text of an explanation


class Contribution(NamedTuple):
    """What a feature of a row adds to the score.

    Attributes
    ----------
    name : str or int
        Its name, or its number if it has no name.
    weight : float
        Its weight in the model.
    value : float
        Its value in the row.
    contribution : float
        Weight times value; for the loss clipped_square, divided by the square root of the number of
        nonzero values of the row, as that loss does.
    """

    name: str | int
    weight: float
    value: float
    contribution: float


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a model predicts what it predicts for one row: the terms of the score.

    Attributes
    ----------
    prediction : object
        What `Model.predict_one` returns: a label, a list of labels, or a value.
    label : object
        The class that the score is for: a high score is evidence for it. None in a regression.
    score : float
        The decision function of the row, bit by bit; negated if `label` is the first of two
        classes.
    intercept : float
        The part of the score that is the same for all rows.
    contributions : tuple of Contribution
        The features of the row that have a weight, largest contribution first.
    without_weight : int
        Number of nonzero values of the row whose feature has no weight.

    Notes
    -----
    The intercept and all contributions add up to the score, up to rounding: the exact sum of the n
    numbers differs from `score` by at most (n + 2) 2^-52 times the sum of their magnitudes, if no
    feature occurs twice in the row.
    """

    prediction: Any
    label: Any
    score: float
    intercept: float
    contributions: tuple[Contribution, ...]
    without_weight: int = 0

    def top(self, count: int) -> tuple[Contribution, ...]:
        """Return the `count` largest contributions.

        Parameters
        ----------
        count : int
        """
        if count < 0:
            raise ParameterError(parameter="count", value=count, allowed="a whole number >= 0")
        return self.contributions[:count]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in types of JSON.

        Returns
        -------
        dict
            Keys ``prediction``, ``label``, ``score``, ``intercept``, ``contributions`` (a list of
            dicts with ``name``, ``weight``, ``value``, ``contribution``), ``without_weight``.
        """
        return {
            "prediction": self.prediction,
            "label": self.label,
            "score": self.score,
            "intercept": self.intercept,
            "contributions": [one._asdict() for one in self.contributions],
            "without_weight": self.without_weight,
        }

    def to_frame(self, kind: str = "pandas") -> Any:
        """Return the contributions as a table, one line each.

        Parameters
        ----------
        kind : {"pandas", "polars", "arrow"}
        """
        columns: dict[str, list[Any]] = {
            name: [getattr(one, name) for one in self.contributions]
            for name in Contribution._fields
        }
        columns["name"] = [str(name) for name in columns["name"]]
        return frame_of(columns, {"name": "string"}, kind)

    def __repr__(self) -> str:
        """Return a table of the largest contributions, the intercept, and their sum."""
        return "\n".join([self._head(), *_table(self._lines())])

    def _head(self) -> str:
        shown = self.prediction
        if isinstance(shown, list):
            shown = ", ".join(map(str, shown)) or "no label"
        shown = f"{shown:.6g}" if isinstance(shown, float) else printable(shown)
        what = "" if self.label is None else f"; the score is for {printable(self.label)}"
        return f"prediction: {shown}{what}"

    def _lines(self) -> list[tuple[str, str, str, str]]:
        shown, rest = self.contributions[:_SHOWN], self.contributions[_SHOWN:]
        lines = [("feature", "weight", "value", "contribution")]
        for one in shown:
            numbers = (f"{one.weight:+.6g}", f"{one.value:.6g}", f"{one.contribution:+.6g}")
            lines.append((printable(one.name), *numbers))
        if rest:
            total = sum(one.contribution for one in rest)
            lines.append((f"({len(rest):,} more)", "", "", f"{total:+.6g}"))
        if self.without_weight:
            lines.append((f"({self.without_weight:,} without weight)", "", "", "0"))
        lines.append(("(intercept)", "", "", f"{self.intercept:+.6g}"))
        return [*lines, ("(score)", "", "", f"{self.score:+.6g}")]


def _table(lines: list[tuple[str, str, str, str]]) -> list[str]:
    """Return lines with the first column on the left and numbers on the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        f"{line[0]:<{widths[0]}}"
        + "".join(f"  {cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        for line in lines
    ]
