"""What stands out in the data, and which option mends it."""

from __future__ import annotations

from thresher.errors import Setting, setting
from thresher.overview.column_findings import column_findings, feature_findings, shortened
from thresher.overview.facts import DataFacts
from thresher.overview.finding import Finding, option_text
from thresher.overview.labels import LabelFacts, label_text
from thresher.overview.sniff import Sniffed

__all__ = ["find"]

_RARE = 0.01  # share of a rare class
_FEW = 10  # rows of a class that is too small to learn
_MOST_OTHERS = 4  # columns that could be labels, too
_COPIES = 0.05  # share of repeated rows, as in discovery
_PLAIN = setting("quotes", False)
_FORMATS = "svmlight, VW text, CSV, Parquet or Arrow"


def find(facts: DataFacts) -> list[Finding]:
    """Return all findings, the serious ones first.

    Parameters
    ----------
    facts : DataFacts
    """
    found = [*_file(facts), *_bytes(facts)]
    if facts.rows.read:
        found += _label(facts) + _order(facts) + column_findings(facts) + feature_findings(facts)
        found += _copies(facts)
    found += [Finding("problem", problem) for problem in facts.problems]
    return sorted(found, key=lambda one: not one.serious)


# ---- files ---------------------------------------------------------------------------------------


def _file(facts: DataFacts) -> list[Finding]:
    """Return findings about the formats of the files."""
    found = []
    for one in facts.files:
        if not one.is_read:
            found.append(_unread(one))
    file = facts.file
    if file is None or not file.is_read:
        return found
    if not facts.rows.read:
        empty = "has a header and no rows" if facts.columns else "is empty"
        found.append(Finding("empty", f"{file.path} {empty}"))
    if "format" in file.unsure:
        what = "the format is not clear from the first line; it is read as CSV"
        found.append(Finding("unclear format", what, (setting("format", "csv"),)))
    found += _layout(file)
    if any("quotes" in one.unsure for one in facts.files):
        what = "a cell begins with a quote that is never closed: it would enclose many lines"
        found.append(Finding("quotes", what, (_PLAIN,)))
    if file.encoding not in ("utf-8", ""):
        what = f"the text is not UTF-8, but {file.encoding}"
        found.append(Finding("encoding", what, (setting("encoding", file.encoding),)))
    return found


def _layout(file: Sniffed) -> list[Finding]:
    """Return the finding that a CSV file has no header."""
    layout = file.layout
    if layout is None or layout.header or not layout.names or layout.tagged:
        return []
    mend = (setting("header", False),)
    if layout.text is not None:
        what = "the first line holds values, not names; the columns are labels and texts"
        return [Finding("header", what, mend, serious="header" in file.unsure)]
    what = f"the first line holds values, not names; the {len(layout.names)} columns are "
    what += f"numbered from 0 to {len(layout.names) - 1}"
    return [Finding("header", what, mend)]


def _unread(one: Sniffed) -> Finding:
    if one.format == "empty":
        return Finding("empty", f"{one.path} is empty")
    if one.format == "lines":
        what = f"{one.path} has one cell per line: there is nothing beside it to be a label"
        return Finding("format", what, advice="add a column of labels")
    name = one.about or f"of the format {one.format}"
    advice = {
        "jsonl": "convert it: pandas.read_json(FILE, lines=True).to_parquet('rows.parquet')",
        "json": "convert it: pandas.read_json(FILE).to_parquet('rows.parquet')",
        "zip": "extract the files in it, or save the sheet as CSV",
        "tar": "unpack it first",
        "model": "thresher inspect shows a model",
    }.get(one.format, f"convert it to {_FORMATS}")
    return Finding("format", f"{one.path} is {name}, not {_FORMATS}", advice=advice)


def _bytes(facts: DataFacts) -> list[Finding]:
    """Return findings about bytes and lines that cannot be read."""
    bad, found = facts.bad, []
    if bad.undecodable:
        what = f"{bad.undecodable:,} bytes are not UTF-8; the first is in {bad.first_undecodable}"
        found.append(Finding("encoding", what, (setting("encoding", "latin-1"),)))
    if bad.nul:
        what = f"{bad.nul:,} NUL bytes; the first is in {bad.first_nul}"
        found.append(Finding("nul", what, advice="remove them", filter=r"tr -d '\0'"))
    if bad.lines:
        lines = "1 line" if bad.lines == 1 else f"{bad.lines:,} lines"
        what = f"{lines} cannot be read; the first: {bad.first}"
        mends: tuple[Setting, ...] = (setting("on_bad_line", "skip"),)
        if "--zero-based" in bad.first:
            what = f"features are numbered from 0: {bad.first}"
            mends = (setting("zero_based", True),)
        advice = f"if quotes are part of the cells, use {option_text(_PLAIN)}" * bad.open_quote
        found.append(Finding("bad lines", what, mends, advice))
    return found


# ---- labels --------------------------------------------------------------------------------------


def _label(facts: DataFacts) -> list[Finding]:
    """Return findings about the labels."""
    label = facts.label
    if facts.columns and not label.columns and label.reason != "given as y":
        why = label.reason or "no column looks like a label"
        return [Finding("no label", f"{why}; the columns are {_names(facts)}",
                        advice="name the column with --label")]  # fmt: skip
    found = []
    if label.columns and not label.usual:
        found.append(_which(facts))
    if not label.rows or (label.task == "multilabel" and not label.counts):
        found.append(Finding("no label", "no row has a label"))
        return found
    found += _task(facts)
    if label.task == "one class":
        what = f"all {label.rows:,} rows that were read have the label {_shown(label, 0)}"
        advice = "use another column" if facts.rows.all_read else "look at all rows with --all"
        found.append(Finding("one class", what, advice=advice))
    if label.missing:
        multi = label.task == "multilabel"
        what = (
            "1 row has no label" if label.missing == 1 else f"{label.missing:,} rows have no label"
        )
        mends = () if multi else (setting("on_bad_line", "skip"),)
        found.append(Finding("missing labels", what, mends, serious=not multi))
    found += _balance(label)
    return found


def _names(facts: DataFacts) -> str:
    return shortened([one.name for one in facts.columns], 12)


def _which(facts: DataFacts) -> Finding:
    """Return the finding that train must be told the column of labels."""
    label = facts.label
    shown = ",".join(label.columns)
    if facts.file is not None and not facts.file.is_named and len(label.columns) == 1:
        position = next(one.position for one in facts.columns if one.name == shown)
        shown = "-1" if position == len(facts.columns) - 1 and position > 1 else str(position)
    others = [name for name in label.candidates if name not in label.columns]
    many = len(label.columns) > 1
    what = f"the labels are in {'columns' if many else 'column'} {', '.join(label.columns)}"
    what += f" ({label.reason})"
    if 0 < len(others) <= _MOST_OTHERS and label.reason != "you named it":
        what += f"; it could also be {' or '.join(others)}"
    return Finding("label", what, (setting("label", shown),), column=label.columns[0])


def _task(facts: DataFacts) -> list[Finding]:
    """Return the finding that train must be told the task."""
    label = facts.label
    if label.task == "multilabel":
        what = f"rows have {label.per_row:.2g} labels on average, of {label.classes:,} labels"
        mends = [setting("multilabel", True)]
        if label.separator.strip():  # lines of fastText need no option
            what += f", with '{label.separator}' between them"
            mends.append(setting("label_separator", label.separator))
        return [Finding("multilabel", what, tuple(mends))]
    if label.task == "regression":
        what = f"labels are numbers from {label.minimum:.6g} to {label.maximum:.6g}"
        return [Finding("regression", _remarked(what, label), (setting("loss", "squared"),))]
    if label.task == "classes" or (label.task == "two classes" and not label.plain_two):
        number = "more than 4,096" if label.classes is None else f"{label.classes:,}"
        what = f"labels are {number} classes"
        if label.words and _sees_words(facts):
            what = f"{_remarked(what, label)}: words, so train needs no option for them"
            return [Finding("classes", what, serious=False)]
        what += ": numbers other than -1 and 1, or 0 and 1" if label.classes == 2 else ""
        return [Finding("classes", _remarked(what, label), (setting("multiclass", True),))]
    return []


def _sees_words(facts: DataFacts) -> bool:
    """Tell whether train sees before it reads the rows that labels are words, as scan does."""
    file = facts.file
    piped = file is not None and file.format == "arrow" and file.size is None
    return not piped and all(isinstance(one, str) for one, _ in facts.label.counts)


def _remarked(what: str, label: LabelFacts) -> str:
    return f"{what} ({label.remark})" if label.remark else what


def _shown(label: LabelFacts, at: int) -> str:
    return label_text(label.counts[at][0])


def _balance(label: LabelFacts) -> list[Finding]:
    if label.task not in ("two classes", "classes") or not label.counts:
        return []
    name, rows = label.counts[-1]
    small = [one for one, times in label.counts if times < _FEW]
    if small and label.task == "classes":
        what = f"{len(small):,} of {label.classes:,} classes have fewer than {_FEW} rows"
        return [Finding("small classes", what, serious=False)]
    if label.task == "two classes" and rows < _RARE * label.rows:
        what = f"the class {label_text(name)} is rare: {rows:,} of {label.rows:,} rows"
        return [Finding("rare class", what, (setting("class_weight", "balanced"),), serious=False)]
    return []


def _order(facts: DataFacts) -> list[Finding]:
    """Return the finding that the rows are not in a random order."""
    order, label = facts.label.order, facts.label
    if order is None or not order.ordered:
        return []
    mend = (setting("shuffle", True),)
    if label.task == "regression":
        what = (
            f"neighbouring rows have similar labels: correlation {order.similarity:.2f}, 0 expected"
        )
        if order.drift is not None and abs(order.drift) >= 0.1:
            what += f"; the labels drift with the row number: correlation {order.drift:.2f}"
        advice = "if rows are in the order of time, test on the last ones"
        return [Finding("order", what, mend, advice)]
    if label.task == "multilabel":
        what = (
            f"neighbouring rows have similar labels: correlation {order.similarity:.2f}, 0 expected"
        )
        return [Finding("order", what, mend)]
    what = (
        f"rows are sorted by label, or come in runs: the longest run is "
        f"{order.longest_run_text} of {label_text(order.longest_run_label)}, about "
        f"{order.expected_longest_run:,} expected of shuffled rows; {order.runs:,} runs, "
        f"{order.expected_runs:,} expected"
    )
    return [Finding("order", what, mend)]


def _copies(facts: DataFacts) -> list[Finding]:
    rows = facts.rows.read
    if not rows or facts.duplicates < _COPIES * rows:
        return []
    about = "" if facts.duplicates_exact else "about "
    what = f"{about}{facts.duplicates:,} of {rows:,} rows repeat an earlier row"
    advice = "keep copies out of test data, or remove them"
    return [Finding("copies", what, advice=advice, serious=False)]
