"""Decides whether a column of strings is text, an identifier of the row, or a category."""

from __future__ import annotations

import re

__all__ = ["is_id_name", "string_kind"]

_TEXT_TOKENS = 3.0  # words per cell of text, if most cells are different
_LONG_TEXT_TOKENS = 8.0  # words per cell of text, however often cells repeat
_TEXT_DISTINCT = 0.3  # share of different cells
_ID_DISTINCT = 0.95
_FEW_ROWS = 20
_ID_NAME = re.compile(
    r"(?:.*[_\s.-])?(?:id|ids|uuid|guid|key|index|idx|rowid|row|no|nr|number|#)\d*"
    r"|unnamed: ?\d+|.*[a-z]I[dD]|",
)


def is_id_name(name: str) -> bool:
    """Tell whether a name is one that people give to identifiers of rows.

    Examples
    --------
    >>> [is_id_name(name) for name in ("customer_id", "userId", "Unnamed: 0", "width", "paid")]
    [True, True, True, False, False]
    """
    return bool(_ID_NAME.fullmatch(name.strip()) or _ID_NAME.fullmatch(name.strip().lower()))


def string_kind(name: str, present: int, distinct: int, tokens: float) -> str:
    """Return the kind of a column of strings: "text", "id" or "category".

    Parameters
    ----------
    name : str
        Name of the column.
    present : int
        Cells that are not missing.
    distinct : int
        Different cells.
    tokens : float
        Mean number of words per cell.

    Examples
    --------
    >>> string_kind("review", 1000, 990, 24.0), string_kind("city", 1000, 5, 1.2)
    ('text', 'category')
    >>> string_kind("session", 1000, 1000, 1.0)
    'id'
    """
    share = distinct / max(present, 1)
    if tokens >= _LONG_TEXT_TOKENS or (tokens >= _TEXT_TOKENS and share >= _TEXT_DISTINCT):
        return "text"
    if present >= _FEW_ROWS and share >= (0.5 if is_id_name(name) else _ID_DISTINCT):
        return "text" if tokens >= 2 else "id"
    return "category"
