"""An evaluation as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thresher.evaluation.metric import Metric, about
from thresher.printable import printable

if TYPE_CHECKING:
    from thresher.evaluation.result import Evaluation, ModelComparison

_CLASSES = 12  # classes of a table
_WIDE = 100


def number(value: float | None) -> str:
    """Return a value as text, with four decimals if it is small.

    Parameters
    ----------
    value : float or None

    Examples
    --------
    >>> number(0.51239), number(12345.678), number(0.0000123), number(None)
    ('0.5124', '12345.7', '1.23e-05', '-')
    """
    if value is None:
        return "-"
    if value and (abs(value) < 1e-3 or abs(value) >= 100):
        return f"{value:.6g}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:.4f}"


def interval_text(one: Metric) -> str:
    """Return the interval of a metric as text; empty if there is none.

    Parameters
    ----------
    one : Metric
    """
    return "" if one.low is None else f"{number(one.low)} to {number(one.high)}"


def counted_rows(found: Evaluation) -> str:
    """Return the task and the number of rows, as the first line of a table.

    With two classes it names the class that precision, recall, F1 and lift are about.

    Parameters
    ----------
    found : Evaluation
    """
    weight = "" if found.weight == found.rows else f" of weight {found.weight:,.6g}"
    task = {"binary": "two classes", "multiclass": "several classes"}.get(found.task, found.task)
    return f"{_rows(found.rows)}{weight}, {task}{_positive(found)}"


def _rows(count: float) -> str:
    return f"{count:,.15g} row{'' if count == 1 else 's'}"


def _positive(found: Evaluation) -> str:
    """Return the sentence about the class of the metrics that are about one of two classes."""
    if found.positive is None:
        return ""
    weight = found.tables["per_class"][1]["weight"]
    rows = _rows(weight) if found.weight == found.rows else f"weight {weight:,.6g}"
    label = printable(found.positive)
    return f"; precision, recall, F1 and lift are of class '{label}' ({rows})"


def bootstrap_text(found: Evaluation) -> str:
    """Return how the intervals were made.

    Parameters
    ----------
    found : Evaluation
    """
    if not found.replicates:
        return "no intervals: there was no bootstrap"
    return (
        f"intervals: {100 * found.level:g} % of {found.replicates:,} bootstrap replicates, seed "
        f"{found.seed}"
    )


def columns_of(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return lines of a table; all columns but the first `left` are aligned to the right.

    Parameters
    ----------
    head : sequence of str
    rows : sequence of sequence of str
    left : int
    """
    every = [list(map(printable, line)) for line in (head, *rows)]
    widths = [max(len(line[k]) for line in every) for k in range(len(head))]
    lines = []
    for line in every:
        cells = [
            cell.ljust(wide) if k < left else cell.rjust(wide)
            for k, (cell, wide) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def evaluation_lines(found: Evaluation) -> list[str]:
    """Return the lines of an evaluation.

    Parameters
    ----------
    found : Evaluation
    """
    rows = []
    reasons: dict[str, list[str]] = {}
    for name, one in found.metrics.items():
        if one.value is None:
            reasons.setdefault(one.reason, []).append(about(name).text)
        else:
            bound = f"+- {one.bound:.1g}" if one.bound else ""
            rows.append([about(name).text, number(one.value), interval_text(one), bound])
    head = ["metric", "value", f"{100 * found.level:g} % interval", "error at most"]
    if not any(row[3] for row in rows):
        head, rows = head[:3], [row[:3] for row in rows]
    if not found.replicates:
        head, rows = [head[0], *head[1:2], *head[3:]], [[*r[:2], *r[3:]] for r in rows]
    lines = [counted_rows(found), "", *columns_of(head, rows)]
    lines += [f"no {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    lines += _confusion(found.tables.get("confusion_matrix"))
    lines += _classes(found.tables.get("per_class", []))
    return [*lines, "", *_ends(found)]


def _ends(found: Evaluation) -> list[str]:
    ends = [bootstrap_text(found), *found.remarks]
    return [line for end in ends for line in textwrap.wrap(printable(end), _WIDE)]


def _confusion(matrix: Mapping[str, Any] | None) -> list[str]:
    if matrix is None or len(matrix["labels"]) > _CLASSES:
        return []
    labels = [str(label) for label in matrix["labels"]]
    rows = [
        [label, *(f"{cell:,.6g}" for cell in line)]
        for label, line in zip(labels, matrix["rows"], strict=True)
    ]
    made = columns_of(["true \\ predicted", *labels], rows)
    return ["", *made] if max(map(len, made)) <= _WIDE else []


def _classes(classes: Sequence[Mapping[str, Any]]) -> list[str]:
    if not classes:
        return []
    head = ["class", "rows", "precision", "recall", "F1"]
    rows = [
        [str(one["label"]), f"{one['weight']:,.6g}",
         *(number(one[name]) for name in ("precision", "recall", "f1"))]
        for one in classes[:_CLASSES]
    ]  # fmt: skip
    more = len(classes) - _CLASSES
    last = [f"and {more:,} more classes, which the page and the JSON have"] if more > 0 else []
    return ["", *columns_of(head, rows), *last]


def test_lines(tests: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the tests of two models as sentences.

    Parameters
    ----------
    tests : mapping
        The attribute `tests` of a `ModelComparison`.
    """
    lines = []
    names = {"mcnemar": "McNemar", "delong": "DeLong"}
    for name, test in tests.items():
        if "undefined" in test:
            lines.append(f"no {names[name]} test: {test['undefined']}")
        elif name == "mcnemar":
            lines.append(
                f"McNemar: only the first is right in {test['only_first']:,} rows, only the second "
                f"in {test['only_second']:,}; p = {test['p_value']:.3g}"
            )
        else:
            lines.append(
                f"DeLong: difference of ROC AUC {test['difference']:+.4g}, standard error "
                f"{test['standard_error']:.2g}; p = {test['p_value']:.3g}"
            )
    return lines


def comparison_lines(found: ModelComparison) -> list[str]:
    """Return the lines of a comparison of two models.

    Parameters
    ----------
    found : ModelComparison
    """
    first, second = found.first, found.second
    rows = []
    for name, one in found.differences.items():
        if one.value is not None:
            mine = (first.metrics[name].value, second.metrics[name].value)
            rows.append([about(name).text, *map(number, mine), number(one.value),
                         interval_text(one)])  # fmt: skip
    head = ["metric", "first", "second", "first - second", f"{100 * first.level:g} % interval"]
    if not first.replicates:
        head, rows = head[:4], [row[:4] for row in rows]
    names = [f"{word}: {printable(one.about['model'])}" for word, one in
             (("first", first), ("second", second)) if "model" in one.about]  # fmt: skip
    remarks = dict.fromkeys([*first.remarks, *second.remarks])
    ends = [bootstrap_text(first), *remarks]
    return [
        counted_rows(first), *names, "", *columns_of(head, rows), "", *test_lines(found.tests),
        *(line for end in ends for line in textwrap.wrap(printable(end), _WIDE)),
    ]  # fmt: skip
