"""A look at data as an HTML page: what stands out, the command, labels, columns, features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thresher.overview.facts import DataFacts
from thresher.overview.finding import Finding
from thresher.overview.kinds import ColumnFacts
from thresher.overview.labels import LabelFacts, label_text
from thresher.overview.summary import (
    column_values,
    command_lines,
    file_text,
    label_facts_text,
    order_text,
    rows_text,
)
from thresher.report.charts import lines
from thresher.report.page import Section, facts, fragment, note, page, text, tiles
from thresher.report.tables import Cell, TableCell, table

if TYPE_CHECKING:
    from thresher.overview.looking import Look

__all__ = ["fragment_of", "page_of"]

_MOST_COLUMNS = 2000
_MOST_CLASSES = 200

_STYLE = """<style>.thresher .findings { padding: 0; list-style: none; max-width: 80ch; }
.thresher .findings li { border-left: 3px solid var(--line); padding: 2px 0 2px 12px;
  margin: 10px 0; }
.thresher .findings li.serious { border-left-color: var(--best); }
.thresher .findings code { background: var(--tint); border-radius: 4px; padding: 1px 5px;
  white-space: normal; }
.thresher .findings .mend { color: var(--soft); font-size: 13.5px; }
.thresher .values td:last-child { min-width: 14em; overflow-wrap: anywhere; }
.thresher .values td:first-child { overflow-wrap: anywhere; min-width: 5em; }
</style>"""


def page_of(look: Look, title: str | None = None) -> str:
    """Return a complete page.

    Parameters
    ----------
    look : Look
    title : str, optional
    """
    found = look.facts
    sections = [Section("", tiles(_numbers(look)) + _STYLE)]
    sections.append(Section("Findings", _findings(look.findings)))
    if look.command:
        sections.append(Section("Suggested command", _command(look)))
    if found.label.task:
        sections.append(Section("Labels", _labels(found.label)))
    if found.columns:
        sections.append(Section("Columns", _columns(found)))
    if found.features is not None and found.rows.read:
        sections.append(Section("Features", _features(found)))
    sections.append(Section("Files" if found.files else "Data", _files(found)))
    serious = sum(one.serious for one in look.findings)
    said = "Nothing needs mending before training."
    if serious:
        said = f"{serious} finding{'s' if serious > 1 else ''} to mend before training."
    return page(title or f"A look at {os.path.basename(found.name)}", sections, said)


def fragment_of(look: Look) -> str:
    """Return a short description for a notebook."""
    parts = [_STYLE, f"<p>{text(look.facts.name)}: {text(rows_text(look.facts))}</p>"]
    parts.append(_findings(look.findings))
    if look.command:
        parts.append(_command(look))
    return fragment("\n".join(parts))


def _numbers(look: Look) -> dict[str, object]:
    """Return the numbers at the top of the page."""
    found, label = look.facts, look.facts.label
    rows = found.rows
    numbers: dict[str, object] = {}
    if rows.all_read or rows.total is None:
        numbers["rows" if rows.all_read else "rows were read"] = rows.read
    else:
        about = "" if rows.exact else "about "
        numbers[f"rows; the first {rows.read:,} were read"] = f"{about}{rows.total:,}"
    if found.columns:
        numbers["columns"] = len(found.columns)
    elif found.features is not None:
        numbers["features"] = found.features.count
    if label.task == "regression":
        numbers["mean of the labels (regression)"] = float(f"{label.mean:.6g}")
    elif label.task:
        many = label.classes is None
        name = "labels" if label.task == "multilabel" else "classes"
        numbers[name] = "many" if many else int(label.classes or 0)
    numbers["findings"] = len(look.findings)
    return numbers


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return note("Nothing stands out.")
    items = []
    for one in findings:
        mends = [f"<code>{text(option)}</code>" for option in one.options]
        if one.advice:
            code = f": <code>{text(one.filter)}</code>" if one.filter else ""
            mends.append(text(one.advice) + code)
        mend = f'<br/><span class="mend">{"; ".join(mends)}</span>' if mends else ""
        kind = ' class="serious"' if one.serious else ""
        items.append(f"<li{kind}>{text(_sentence(one.what))}{mend}</li>")
    return '<ul class="findings">' + "\n".join(items) + "</ul>"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _command(look: Look) -> str:
    shown = "\n".join(line[2:] for line in command_lines(look.command, 90))
    reasons = {
        option["option"]: option["reason"] for option in look.suggestion.to_json()["options"]
    }
    body = f"<pre>{text(shown)}</pre>"
    return body + (facts(reasons) if reasons else note("No option is needed."))


def _labels(label: LabelFacts) -> str:
    where = f"Column {', '.join(label.columns)}: " if label.columns else ""
    body = f"<p>{text(_sentence(where + label_facts_text(label)))}</p>"
    if label.counts and label.task != "regression":
        most = max(rows for _, rows in label.counts)
        rows: list[list[Cell]] = [
            [
                label_text(name),
                TableCell(f"{count:,}", count, count / most),
                TableCell(f"{count / max(label.rows, 1):.2%}", count / max(label.rows, 1)),
            ]
            for name, count in label.counts[:_MOST_CLASSES]
        ]
        body += table(["label", "rows", "share"], rows, search=len(rows) > 25)
        if len(label.counts) > _MOST_CLASSES:
            body += note(f"{len(label.counts) - _MOST_CLASSES:,} rarer labels are not shown.")
    words = order_text(label)
    if words:
        body += f"<p>{text(_sentence('order: ' + words))}</p>"
    order = label.order
    if order is not None and len(order.series) > 1:
        name, title = "mean label", "Mean label along the rows"
        if order.series_of is not None:
            name = f"share of {label_text(order.series_of)}"
            title = f"Share of the label {label_text(order.series_of)} along the rows"
        series = list(order.series)
        mean = sum(value for _, value in series) / len(series)
        drawn = {name: series, "of all rows": [(series[0][0], mean), (series[-1][0], mean)]}
        body += lines(drawn, x="row", y=name, title=title)
    return body


def _columns(found: DataFacts) -> str:
    rows: list[list[Cell]] = []
    marked = []
    for at, one in enumerate(found.columns[:_MOST_COLUMNS]):
        rows.append(_column(one))
        if one.name in found.label.columns:
            marked.append(at)
    head = ["column", "kind", "missing", "different", "size", "values"]
    named = table(head, rows, search=len(rows) > 12, marked=marked)
    body = f'<div class="values">{named}</div>'
    words = "size: the largest absolute value, relative to the median column of numbers"
    if found.label.columns:
        words += "; highlighted: the column of labels"
    if len(found.columns) > _MOST_COLUMNS:
        words += f"; {len(found.columns) - _MOST_COLUMNS:,} more columns are not shown"
    return body + note(_sentence(words))


def _column(one: ColumnFacts) -> list[Cell]:
    share = one.missing / max(one.rows, 1)
    about = "" if one.distinct_exact else "about "
    return [
        one.name,
        one.kind,
        TableCell(f"{one.missing:,} ({share:.1%})" if one.missing else "0", one.missing),
        TableCell(f"{about}{one.distinct:,}", one.distinct),
        None if one.ratio is None else TableCell(f"{one.ratio:.2g}", one.ratio),
        column_values(one),
    ]


def _features(found: DataFacts) -> str:
    own = found.features
    if own is None:
        return ""
    about = "" if own.count_exact else "about "
    told: dict[str, object] = {
        "different features": f"{about}{own.count:,}",
        "values": own.nonzeros,
        "values per row": f"{own.per_row:.4g} on average, {own.least:,} to {own.most:,}",
    }
    if own.minimum is not None:
        told["smallest and largest value"] = f"{own.minimum:.6g} and {own.maximum:.6g}"
    if own.once is not None:
        told["features in one row only"] = own.once
    if own.largest is not None:
        told["largest feature number"] = own.largest
    body = facts(told)
    if own.namespaces:
        spaces: list[list[Cell]] = [[name or "(default)", a, b] for name, a, b in own.namespaces]
        body += table(["namespace", "features", "values"], spaces, caption="Namespaces")
    if own.top:
        most = own.top[0][1]
        top: list[list[Cell]] = [
            [name, TableCell(f"{rows:,}", rows, rows / most)] for name, rows in own.top
        ]
        body += table(["feature", "rows"], top, caption="Most frequent features")
    return body


def _files(found: DataFacts) -> str:
    items = [
        f"<li><b>{text(one.path)}</b>: {text(file_text(one))}</li>" for one in found.files[:100]
    ]
    body = f"<ul>{''.join(items)}</ul>" if items else ""
    if len(found.files) > 100:
        body += note(f"{len(found.files) - 100:,} more files are not shown.")
    return body + f"<p>{text(_sentence(rows_text(found)))}</p>"
