"""Tells columns of text and columns of ids from columns of categories.

A column of strings is *text* if its values have three words or more in the mean, and at least half
of them are different. It is a column of *ids* if its values are almost all different, and mostly
single words. Other columns are categories. docs/tables.md has the measurements.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from thresher.data.columns import arrow, is_string, plain
from thresher.errors import DataWarning, setting

__all__ = [
    "SAMPLE",
    "IdColumnWarning",
    "TextColumnWarning",
    "Use",
    "use_by_counts",
    "use_of_strings",
    "warn_of_strings",
]

Use = Literal["text", "id", "category"]
SAMPLE = 2000  # values that are looked at
_FEWEST = 20  # values that are needed for a decision by distinct values
_WORDS = 3.0  # words per value of text, at least, in the mean
_DISTINCT = 0.5  # share of different values of text, at least
_ALL_DISTINCT = 0.95  # share of different values of ids, at least


class TextColumnWarning(DataWarning):
    """A column of text is read as a category: each different text is one feature."""


class IdColumnWarning(DataWarning):
    """Nearly every row has its own value in a column: the column cannot help to predict."""


def use_by_counts(words: float, distinct: int, values: int) -> Use:
    """Return the use of a column of strings.

    Parameters
    ----------
    words : float
        Words per value, in the mean.
    distinct : int
        Number of different values.
    values : int
        Number of values.

    Examples
    --------
    >>> use_by_counts(24.0, 990, 1000), use_by_counts(1.0, 1000, 1000), use_by_counts(1.2, 5, 1000)
    ('text', 'id', 'category')
    """
    if values and words >= _WORDS and (values < _FEWEST or distinct >= _DISTINCT * values):
        return "text"
    return "id" if values >= _FEWEST and distinct >= _ALL_DISTINCT * values else "category"


def use_of_strings(column: Any) -> tuple[Use, float, int, int]:
    """Return the use of a column of strings, from its first values.

    Returns
    -------
    use : {"text", "id", "category"}
    words : float
        Words per value, in the mean.
    distinct : int
        Number of different values.
    values : int
        Number of values that were looked at.
    """
    pa = arrow("reading tables")
    values = column.drop_null().slice(0, SAMPLE)
    if not len(values):
        return "category", 0.0, 0, 0
    counts = pa.compute.count_substring_regex(values, pattern=r"\S+")
    words = float(np.mean(plain(counts, np.int64)))
    distinct, count = len(values.unique()), len(values)
    return use_by_counts(words, distinct, count), words, distinct, count


def warn_of_strings(path: str, name: str, column: Any) -> None:
    """Warn if a column that is read as a category is text or an id.

    Parameters
    ----------
    path : str
    name : str
        The name of the column.
    column : pyarrow.Array
        Its first values.
    """
    if not is_string(column.type):
        return
    use, words, distinct, count = use_of_strings(column)
    if use == "category" or count < _FEWEST:
        return
    seen = f"{distinct:,} different values in its first {count:,} rows"
    if use == "text":
        warning: DataWarning = TextColumnWarning(
            f"column '{name}' has {seen}, of {words:.1f} words in the mean, and each value is one "
            f"feature",
            place=path,
            parameter="text",
            hint=("if it is text, make each word a feature with ", setting("text", name)),
        )
    else:
        warning = IdColumnWarning(
            f"column '{name}' has {seen}, and each value is one feature",
            place=path,
            parameter="ignore",
            hint=("if it only numbers or names the rows, leave it out with ",
                  setting("ignore", name)),
        )  # fmt: skip
    warnings.warn(warning, stacklevel=2)
