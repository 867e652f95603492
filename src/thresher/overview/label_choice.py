"""Which column of a table is the label, if nobody says so; and what its values are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thresher.overview.kinds import ColumnFacts

__all__ = ["SEPARATORS", "LabelChoice", "choose_label", "separator_of", "task_of"]

SEPARATORS = ",;|"
USUAL = ("label", "y", "target", "class")  # what `thresher train` takes without --label
_NAMES = re.compile(
    r"labels?|y|target|class(?:es)?|outcome|response|result|category|categories|topics?|tags?|genres?|"
    r"sentiment|polarity|survived|churn(?:ed)?|default|clicks?|clicked|fraud|diagnosis|species|"
    r"quality|rating|stars|score|price|cost|sales?|amount|salary|income|is_.*|has_.*|.*_(?:label|"
    r"class|target|category)|exited|attrition|spam|opinion|income_bracket|medv|toxic|is[A-Z].*"
)
_AMOUNTS = re.compile(r".*(?:price|cost|amount|salary|income|sales?|age|value|count|score|medv).*")
_NOT_LABELS = ("text", "id", "date", "other", "constant", "empty")
_MOST_CLASSES = 100  # different whole numbers that are classes
_ROWS_PER_CLASS = 10
_NEAR = 2.0  # a column with a score that is less by this could be the label, too
_FEW_NAMED = 3  # columns of 0 and 1 that are labels, at least


@dataclass(frozen=True)
class LabelChoice:
    """The column or columns of labels.

    Attributes
    ----------
    columns : tuple of str
        Several: one column of 0 and 1 for each label. Empty: no column can be a label.
    reason : str
        Why they were chosen.
    candidates : tuple of str
        Columns that could be labels, the best one first.
    separator : str
        What is between the labels of a cell; empty if a cell has one label.
    usual : bool
        Whether `thresher train` chooses the same column by itself.
    """

    columns: tuple[str, ...] = ()
    reason: str = ""
    candidates: tuple[str, ...] = ()
    separator: str = ""
    usual: bool = False


def choose_label(
    columns: Sequence[ColumnFacts],
    samples: dict[str, list[str]],
    given: str | None = None,
    header: bool = True,
) -> LabelChoice:
    """Choose the column of labels.

    Parameters
    ----------
    columns : sequence of ColumnFacts
        Facts about the first rows.
    samples : dict
        Some cells of each column of strings.
    given : str, optional
        Name or position of the column, if it is known; several with commas between them.
    header : bool
        Whether columns have names.
    """
    names = [one.name for one in columns]
    classes = [one for one in columns if one.kind in ("category", "truth")]
    alone = classes[0].name if len(classes) == 1 and len(columns) > 3 else None
    scored = sorted(
        (
            (_score(one, len(columns), header) + 2.5 * (one.name == alone), one.name)
            for one in columns
        ),
        key=lambda pair: -pair[0],
    )
    near = scored[0][0] - _NEAR if scored else 0.0
    candidates = tuple(name for score, name in scored if score > 0 and score >= near)
    if given is not None:
        chosen = _given(given, names)
        reason = "you named it" if chosen else f"there is no column {given!r}"
        sep = separator_of(samples.get(chosen[0], [])) if len(chosen) == 1 else ""
        return LabelChoice(chosen, reason, candidates, sep, chosen == (given,) and given in USUAL)
    usual = [one.name for one in columns if one.name in USUAL and one.kind != "other"]
    usual = usual if header else []
    if len(usual) == 1:
        sep = separator_of(samples.get(usual[0], []))
        return LabelChoice((usual[0],), f"it is called {usual[0]}", candidates, sep, True)
    several = _zero_one_columns(columns, header)
    if several:
        return LabelChoice(several, "columns of 0 and 1 beside a column of text", candidates)
    if not candidates:
        return LabelChoice()
    best = next(one for one in columns if one.name == candidates[0])
    sep = separator_of(samples.get(best.name, []))
    return LabelChoice((best.name,), _why(best, len(columns), header), candidates, sep)


def _given(given: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a name, a position, or several names stand for."""
    if given in names:
        return (given,)
    if re.fullmatch(r"-?\d+", given) and -len(names) <= int(given) < len(names):
        return (names[int(given)],)
    several = tuple(part.strip() for part in given.split(","))
    return several if len(several) > 1 and set(several) <= set(names) else ()


def _score(one: ColumnFacts, width: int, header: bool) -> float:
    """Return how much a column looks like a label; 0 or less: it cannot be one."""
    if one.kind in _NOT_LABELS:
        return 0.0
    score = 0.0
    if (header and _NAMES.fullmatch(one.name.strip())) or (
        header and _NAMES.fullmatch(one.name.strip().lower())
    ):
        score += 3.0
    if one.position == width - 1:
        score += 2.0
    if one.position == 0:
        score += 1.0
    if one.kind in ("category", "truth"):
        score += 2.0 if one.distinct <= 2 else 1.5 if one.distinct <= 30 else 0.5
    if one.kind == "list":
        score += 0.5
    if one.kind == "number":
        classes = one.whole and one.distinct <= 30
        score += 2.0 if one.binary or (classes and one.distinct == 2) else 1.0 if classes else 0.5
    if one.missing:
        score -= 0.5
    return score


def _why(one: ColumnFacts, width: int, header: bool) -> str:
    reasons = []
    if header and _NAMES.fullmatch(one.name.strip().lower()):
        reasons.append("its name is usual for labels")
    if one.position == width - 1:
        reasons.append("it is the last column")
    elif one.position == 0:
        reasons.append("it is the first column")
    if one.distinct <= 30:
        reasons.append(f"it has {one.distinct} different values")
    if one.kind == "category" and one.position not in (0, width - 1):
        reasons.append("other columns are numbers or text")
    return ", ".join(reasons) or "no other column is more like a label"


def _zero_one_columns(columns: Sequence[ColumnFacts], header: bool) -> tuple[str, ...]:
    """Return columns of 0 and 1 that are one label each: beside text, with nothing else."""
    if not header:
        return ()
    ones = [one for one in columns if one.binary or one.kind == "truth"]
    rest = [one for one in columns if one not in ones]
    if len(ones) < _FEW_NAMED or not any(one.kind == "text" for one in rest):
        return ()
    if any(one.kind not in _NOT_LABELS for one in rest):
        return ()
    return tuple(one.name for one in ones)


def separator_of(cells: Sequence[str]) -> str:
    """Return what separates the labels of a cell; empty if cells have one label each.

    The parts must be fewer than the cells, be short, and repeat.

    Examples
    --------
    >>> separator_of(["art;food", "food", "art", "food;music"] * 10)
    ';'
    >>> separator_of(["Rome, Italy", "Oslo, Norway"] * 10)
    ''
    """
    if len(cells) < 10:
        return ""
    for separator in SEPARATORS:
        split = [[part.strip() for part in cell.split(separator)] for cell in cells]
        several = sum(len(parts) > 1 for parts in split)
        parts = Counter(part for own in split for part in own if part)
        alone = {own[0] for own in split if len(own) == 1}
        again = sum(part in alone for part in parts) / max(len(parts), 1)
        cells_distinct = len(set(cells))
        words = sum(len(part.split()) for part in parts) / max(len(parts), 1)
        repeats = len(parts) < cells_distinct or (again >= 0.5 and len(parts) <= len(cells) / 5)
        if several >= 0.05 * len(cells) and repeats and words < 4:
            return separator
    return ""


def task_of(
    values: Counter[Any] | None, rows: int, name: str = "", whole: bool = True
) -> tuple[str, str]:
    """Return the task that labels stand for, and a remark if it is not certain.

    Parameters
    ----------
    values : Counter or None
        Rows of each label; None: too many different ones.
    rows : int
        Rows with a label.
    name : str
        Name of the column.
    whole : bool
        Whether labels that are numbers are whole.

    Returns
    -------
    tuple of (str, str)
        "two classes", "classes", "regression", "one class", or "" without labels; and a remark.

    Examples
    --------
    >>> task_of(Counter({0.0: 5, 1.0: 5}), 10)
    ('two classes', '')
    >>> task_of(Counter({"ham": 5, "spam": 4, "other": 1}), 10)[0]
    'classes'
    >>> task_of(None, 1000, whole=False)[0]
    'regression'
    """
    if not rows:
        return "", ""
    numeric = values is None or all(isinstance(value, int | float) for value in values)
    if values is not None and len(values) == 1:
        return "one class", ""
    if values is not None and len(values) == 2:
        return "two classes", ""
    if not numeric:
        return "classes", ""
    few = values is not None and len(values) <= min(_MOST_CLASSES, max(rows / _ROWS_PER_CLASS, 3))
    if few and whole and values is not None:
        if len(values) > 10 and _AMOUNTS.fullmatch(name.lower()):
            return "regression", "whole numbers that could also be classes (--multiclass)"
        sure = len(values) <= 4
        return "classes", "" if sure else "whole numbers that could also be predicted as numbers"
    return "regression", ""
