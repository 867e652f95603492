"""A look at data as text of at most 80 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thresher.overview.facts import DataFacts
from thresher.overview.finding import Finding
from thresher.overview.kinds import KINDS, ColumnFacts
from thresher.overview.labels import LabelFacts, label_text
from thresher.overview.sniff import Sniffed
from thresher.printable import printable

if TYPE_CHECKING:
    from thresher.overview.looking import Look

__all__ = [
    "column_values",
    "command_lines",
    "file_text",
    "label_facts_text",
    "order_text",
    "rows_text",
    "summary",
]

WIDTH = 80
_COLUMNS = 24  # columns of a table that are shown
_CLASSES = 8
_FEATURES = 8
_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "spaces"}


def summary(look: Look) -> str:
    """Return a look as text.

    Parameters
    ----------
    look : Look
    """
    facts = look.facts
    parts = [_head(facts)]
    if facts.rows.read:
        parts += [_label(facts.label), _columns(facts), _features(facts)]
    parts += [_findings(look.findings), _command(look)]
    return "\n\n".join(part for part in parts if part)


def _wrapped(words: str, first: str = "", rest: str | None = None) -> str:
    return textwrap.fill(
        printable(words),
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_on_hyphens=False,
        break_long_words=True,
    )


# ---- head ----------------------------------------------------------------------------------------


def _head(facts: DataFacts) -> str:
    lines = []
    for one in facts.files[:5]:
        lines.append(_wrapped(f"{one.path}: {file_text(one)}", "", "  "))
    if len(facts.files) > 5:
        lines.append(f"and {len(facts.files) - 5:,} more files")
    if not facts.files:
        lines.append(printable(facts.name))
    if facts.rows.read or not facts.files or facts.columns:
        lines.append(_wrapped(rows_text(facts)))
    return "\n".join(lines)


def file_text(one: Sniffed) -> str:
    """Return the format of a file in words."""
    names = {"csv": "CSV", "vw": "VW text", "parquet": "Parquet", "arrow": "Arrow"}
    parts = [one.about or names.get(one.format, one.format)]
    layout = one.layout
    if layout is not None and layout.names:
        if layout.tagged:
            parts = ["lines of fastText"]
        else:
            by = _NAMES.get(layout.delimiter, layout.delimiter)
            parts.append(f"separated by {by}")
            parts.append("with header" if layout.header else "without header")
    if one.encoding:
        parts.append(one.encoding.upper() + (" with byte order mark" if one.bom else ""))
    if one.line_end != "\n":
        parts.append("lines end with " + {"\r\n": "CRLF", "\r": "CR"}[one.line_end])
    if one.compression:
        parts.append(one.compression)
    if one.size is not None:
        parts.append(_bytes(one.size))
    return ", ".join(parts)


def _bytes(size: int) -> str:
    value, unit = float(size), "bytes"
    for bigger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, bigger
    return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"


def rows_text(facts: DataFacts) -> str:
    """Return the number of rows and columns in words."""
    rows = facts.rows
    if rows.all_read:
        found = f"{rows.read:,} rows"
    else:
        found = f"the first {rows.read:,} rows were read"
        if rows.total is not None:
            about = "" if rows.exact else "about "
            by = "" if rows.exact else ", estimated by bytes"
            found += f" of {about}{rows.total:,}{by}"
        found += "; --all reads all"
    if facts.columns:
        kinds = Counter(one.kind for one in facts.columns)
        shown = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
        found += f"; {len(facts.columns):,} columns: {shown}"
    if facts.duplicates:
        about = "" if facts.duplicates_exact else "about "
        found += f"; {about}{facts.duplicates:,} rows repeat an earlier one"
    return found


# ---- label ---------------------------------------------------------------------------------------


def _label(label: LabelFacts) -> str:
    if not label.task:
        return ""
    many = "s" if len(label.columns) > 1 else ""
    where = f" in column{many} {', '.join(label.columns)}" if label.columns else ""
    lines = [_wrapped(f"Labels{where}: {label_facts_text(label)}", "", "  ")]
    if label.task in ("two classes", "classes", "multilabel", "one class"):
        lines += _classes(label)
    words = order_text(label)
    if words:
        lines.append(_wrapped(f"Order: {words}", "", "  "))
    return "\n".join(lines)


def label_facts_text(label: LabelFacts) -> str:
    """Return the task and the number of labels in words."""
    if label.task == "regression":
        found = (
            f"numbers from {label.minimum:.6g} to {label.maximum:.6g}, mean {label.mean:.6g} "
            f"(regression)"
        )
    elif label.task == "multilabel":
        found = f"any number per row, {label.per_row:.2g} on average, of {label.classes:,} labels"
    elif label.task == "two classes":
        found = "two classes"
    elif label.task == "one class":
        found = "one class only"
    else:
        found = "many classes" if label.classes is None else f"{label.classes:,} classes"
    none = "1 row has" if label.missing == 1 else f"{label.missing:,} rows have"
    return found + (f"; {none} none" if label.missing else "")


def _classes(label: LabelFacts) -> list[str]:
    shown = label.counts[:_CLASSES]
    names = [label_text(name)[:30] for name, _ in shown]
    wide = max(map(len, names), default=0)
    most = max((rows for _, rows in shown), default=1)
    count = max(len(f"{rows:,}") for _, rows in shown) if shown else 1
    lines = []
    for name, (_, rows) in zip(names, shown, strict=True):
        bar = "#" * max(round(24 * rows / most), 1)
        share = rows / max(label.rows, 1)
        lines.append(f"  {name:<{wide}}  {rows:>{count},}  {share:>6.1%}  {bar}")
    if len(label.counts) > len(shown):
        least = label.counts[-1][1]
        lines.append(
            f"  and {len(label.counts) - len(shown):,} more; the rarest has {least:,} rows"
        )
    return lines


def order_text(label: LabelFacts) -> str:
    """Return the order of the rows in words; empty if it is not known."""
    order = label.order
    if order is None:
        return ""
    if order.longest_run is not None:
        return (
            f"the longest run is {order.longest_run_text} of "
            f"{label_text(order.longest_run_label)}; about {order.expected_longest_run:,} "
            f"expected of shuffled rows"
        )
    found = f"correlation of neighbouring labels {order.similarity:.2f}; 0 expected"
    if order.drift is not None:
        found += f". Correlation of label and row number {order.drift:.2f}"
    return found


# ---- columns and features ------------------------------------------------------------------------


def _columns(facts: DataFacts) -> str:
    if not facts.columns:
        return ""
    shown = facts.columns[:_COLUMNS]
    head = ("name", "kind", "missing", "distinct", "values")
    rows = [
        (
            (printable(one.name)[:22] + (" *" if one.name in facts.label.columns else "")),
            one.kind,
            f"{one.missing:,}" if one.missing else "",
            ("" if one.distinct_exact else "~") + f"{one.distinct:,}",
            printable(column_values(one)),
        )
        for one in shown
    ]
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(4)]
    lines = ["Columns" + (" (* label)" if facts.label.columns else "")]
    for name, kind, missing, distinct, values in [head, *rows]:
        line = (
            f"  {name:<{widths[0]}}  {kind:<{widths[1]}}  {missing:>{widths[2]}}  "
            f"{distinct:>{widths[3]}}  {values}"
        )
        lines.append(line[: WIDTH - 3].rstrip() + "..." if len(line) > WIDTH else line.rstrip())
    if len(facts.columns) > len(shown):
        kinds = Counter(one.kind for one in facts.columns[_COLUMNS:])
        rest = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        lines.append(f"  and {len(facts.columns) - _COLUMNS:,} more: {rest}")
    return "\n".join(lines)


def column_values(one: ColumnFacts) -> str:
    """Return what a column holds, in a few words."""
    if one.kind in ("number", "id") and one.minimum is not None:
        found = f"{one.minimum:.6g} to {one.maximum:.6g}"
        if one.ratio is not None and one.ratio > 0 and max(one.ratio, 1 / one.ratio) >= 1e3:
            times = one.ratio if one.ratio > 1 else 1 / one.ratio
            found += f", {times:.2g} x {'larger' if one.ratio > 1 else 'smaller'} than median"
        if one.mixed and one.first_word:
            found += f", {one.words:,} words ({one.first_word[0][:12]})"
        return found
    if one.kind == "text":
        return f"{one.tokens:.0f} words: {' '.join(one.example.split())}"
    if one.kind == "empty":
        return ""
    if one.kind == "date":
        return one.example
    if one.kind == "truth":
        names = {0.0: "false", 1.0: "true"}
        return ", ".join(f"{names.get(value, value)} ({rows:,})" for value, rows in one.top)
    if one.top:
        return ", ".join(f"{label_text(value)} ({rows:,})" for value, rows in one.top[:4])
    return one.example


def _features(facts: DataFacts) -> str:
    found = facts.features
    if found is None:
        return ""
    about = "" if found.count_exact else "about "
    words = (
        f"Features: {about}{found.count:,} different ones, {found.per_row:.4g} values per row "
        f"({found.least:,} to {found.most:,})"
    )
    if found.all_ones:
        words += ", all 1"
    elif found.minimum is not None:
        words += f", from {found.minimum:.4g} to {found.maximum:.4g}"
    if found.largest is not None and found.largest >= found.count:
        words += f"; the largest number is {found.largest:,}"
    if found.once:
        words += f"; {found.once:,} occur in one row only"
    lines = [_wrapped(words, "", "  ")]
    if found.namespaces:
        spaces = [
            f"{name or '(default)'} ({features:,} features, {values:,} values)"
            for name, features, values in found.namespaces[:6]
        ]
        lines.append(_wrapped(f"Namespaces: {', '.join(spaces)}", "", "  "))
    if found.top:
        shown = ", ".join(f"{name} ({rows:,})" for name, rows in found.top[:_FEATURES])
        lines.append(_wrapped(f"Most frequent: {shown}", "", "  "))
    return "\n".join(lines)


# ---- findings ------------------------------------------------------------------------------------


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return "Nothing stands out."
    lines = ["Findings"]
    for one in findings:
        lines.append(_wrapped(f"{one.what}.", "! " if one.serious else "- ", "  "))
        if one.mends:
            lines.append(_wrapped("; ".join(one.mends), "    -> ", "       "))
    return "\n".join(lines)


def _command(look: Look) -> str:
    command = look.command
    if not command:
        return ""
    return "\n".join(["Suggested command", *command_lines(printable(command), WIDTH - 4)])


def command_lines(command: str, width: int) -> list[str]:
    """Return a command, in several lines if it is long.

    Examples
    --------
    >>> len(command_lines("thresher train a.csv --label y --shuffle", 28))
    2
    """
    before, mended, rest = command.rpartition(" && ")
    head, *options = rest.split(" --")
    lines, now = ([f"  {before} &&"] if mended else []), f"  {head}"
    for option in options:
        piece = f" --{option}"
        if len(now) + len(piece) > width:
            lines.append(f"{now} \\")
            now = "     " + piece
        else:
            now += piece
    return [*lines, now]
