"""What a discovery found: a line and a sentence for each feature."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

from thresher.printable import printable

COLUMNS = (
    "feature", "direction", "label", "rows", "z", "q", "p", "expected_false", "selected", "weight",
    "wald", "group",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """The evidence for one feature.

    Attributes
    ----------
    feature : str or int
        Its name, or its number if it has none.
    number : int
        Its column, or its key if features have names.
    direction : {"raises", "lowers"}
        What it does to the odds of the label, or to the target of a regression.
    label : object
        The class whose odds change; None in a regression.
    rows : int
        Number of rows with a nonzero value.
    z : float
        Evidence that the label depends on it beyond what the other features explain.
    q : float
        Expected share of false features among those at least as strong.
    p : float
        p-value against redraws of features that are about as frequent.
    expected_false : float
        Number of features without effect that are expected to look as strong.
    alike : int
        Number of features that are about as frequent.
    selected : bool
    weight : float or None
        Weight in one fit of all selected features; None: it was not fitted.
    wald : float or None
        This weight in units of its standard error.
    group : object
        Its group, if groups of features are selected; None: there are no groups. Then `q`, `p`,
        `expected_false` and `alike` are those of the group, and `z` is that of the feature.
    """

    feature: str | int
    number: int
    direction: str
    label: Any
    rows: int
    z: float
    q: float
    p: float
    expected_false: float
    alike: int
    selected: bool
    weight: float | None = None
    wald: float | None = None
    group: Any = None

    def __post_init__(self) -> None:
        for name in ("label", "group"):  # not types of NumPy
            value = getattr(self, name)
            object.__setattr__(self, name, value.item() if hasattr(value, "item") else value)

    def sentence(self, features: int, redraws: int) -> str:
        """Return the evidence in words.

        Parameters
        ----------
        features : int
            Number of features that occurred.
        redraws : int
            Number of redraws of the targets.

        Examples
        --------
        >>> from thresher.discovery.findings import Finding
        >>> found = Finding("cat", 3, "raises", 1, 22, 3.1, 0.08, 0.0004, 2.9, 3092, True)
        >>> print(found.sentence(33954, 20))
        cat: in 22 rows; raises the odds of 1 beyond what the other features explain; z = 3.1.
        With labels redrawn from the model without it, 2.9 of 33,954 features would look as strong;
        p = 0.0004 against 3,092 features about as frequent. Of the features at least as strong,
        about 8 % are expected to be false (no effect given the others). It may stand in for a
        feature that it goes along with.
        """
        what = (
            "the target"
            if self.label is None
            else f"the odds of {printable(label_text(self.label))}"
        )
        least = self.expected_false * redraws < 1.5
        if least:
            number = f"none of {features:,} features looks as strong in {redraws} redraws"
        else:
            count = f"{self.expected_false:.{0 if self.expected_false >= 10 else 1}f}"
            number = f"{count} of {features:,} features would look as strong"
        unit = "row" if self.rows == 1 else "rows"
        kind = "targets" if self.label is None else "labels"
        last = "It is not selected."
        if self.selected:
            last = "It may stand in for a\nfeature that it goes along with."
        share = "less than 1 %" if self.q < 0.01 else f"about {100 * self.q:.0f} %"
        return (
            f"{printable(self.feature)}: in {self.rows:,} {unit}; {self.direction} {what} beyond "
            f"what the other features explain; z = {self.z:.1f}.\n"
            f"With {kind} redrawn from the model without it, {number};\n"
            f"p {'<' if least else '='} {self.p:.2g} against {self.alike:,} features about as "
            f"frequent. Of the features at least as strong,\n"
            f"{share} are expected to be false (no effect given the others). {last}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as JSON types."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def label_text(label: Any) -> str:
    """Return the text of a class: 1 instead of 1.0."""
    label = label.item() if hasattr(label, "item") else label
    return f"{label:.10g}" if isinstance(label, float) else str(label)


def near_names(word: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return names that someone who wrote a word may have meant.

    Parameters
    ----------
    word : str
    names : iterable of str
    most : int
        Number of names at most.

    Examples
    --------
    >>> from thresher.discovery.findings import near_names
    >>> near_names("space", ["text^space", "text^spade", "title^Space", "spice"])
    ['text^space', 'title^Space']
    >>> near_names("spaec", ["space", "age"])
    ['space']
    """
    known = sorted(names)
    small = word.lower()
    ends = f"^{small}", f"={small}"
    same = [name for name in known if name.lower() == small or name.lower().endswith(ends)]
    return same[:most] or get_close_matches(word, known, most)


def csv_of(findings: Sequence[Finding]) -> str:
    """Return a table as CSV.

    Parameters
    ----------
    findings : sequence of Finding
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for found in findings:
        values = found.to_json()
        writer.writerow(["" if values[name] is None else values[name] for name in COLUMNS])
    return out.getvalue()


def json_of(findings: Sequence[Finding], **facts: Any) -> str:
    """Return a table and other facts as JSON.

    Parameters
    ----------
    findings : sequence of Finding
    **facts
        Other entries of the object.
    """
    return json.dumps(
        {**facts, "features": [found.to_json() for found in findings]}, indent=1, allow_nan=False
    )
