"""What stands out in the columns of tables and in the features of sparse rows."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.errors import setting
from thresher.overview.facts import DataFacts
from thresher.overview.finding import Finding
from thresher.overview.kinds import ColumnFacts

__all__ = ["column_findings", "feature_findings", "shortened"]

_FAR = 1e3  # as `thresher.health.dynamic_range`
_KNOWN_MISSING = {"", "NA", "N/A", "null", "NULL", "None"}  # what the reader of CSV files knows
_TOLD = 5
_OTHER_RULES = "only for other rules: the default rule, one-pass, does not need it"
_MANY_DATES = 0.2  # share of different dates of which no category repeats enough


def shortened(words: Sequence[str], most: int = _TOLD) -> str:
    """Return words with commas between them; of many, the first ones.

    Examples
    --------
    >>> shortened(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most:,} more"


def column_findings(facts: DataFacts) -> list[Finding]:
    """Return what stands out in the columns, without those of labels."""
    used = [one for one in facts.columns if one.name not in facts.label.columns]
    layout = None if facts.file is None else facts.file.layout
    found: list[Finding] = []
    for one in used:
        if one.kind == "text" and (layout is None or one.name != layout.text):
            found.append(_text(one, facts))
        if one.kind == "id":
            found.append(_id(one, facts))
        if one.mixed:
            found.append(_mixed(one, facts))
        if one.infinite:
            what = f"column {one.name} has {one.infinite:,} infinite numbers"
            advice = "remove these rows, or replace the numbers"
            found.append(
                Finding("infinite", what, (setting("on_bad_line", "skip"),), advice, True, one.name)
            )
    found += [_unusable(one, facts) for one in facts.columns if one.kind == "other"]
    found += _dates([one for one in used if one.kind == "date"], facts)
    found += _missing([one for one in used if one.missing and one.kind != "empty"], facts)
    found += _scale(used)
    found += _useless([one for one in used if one.kind in ("constant", "empty")], facts)
    return found


def _text(one: ColumnFacts, facts: DataFacts) -> Finding:
    what = (
        f"column {one.name} is text: {one.tokens:.0f} words per cell, "
        f"{_count(one)} different cells in {one.rows:,} rows. Without the option, each cell is "
        f"one category"
    )
    return Finding("text", what, (setting("text", _named(one, facts)),), column=one.name)


def _id(one: ColumnFacts, facts: DataFacts) -> Finding:
    what = (
        f"column {one.name} identifies rows: {_count(one)} different values in {one.rows:,} rows. "
        f"A model would learn single rows from it"
    )
    return Finding("id", what, (setting("ignore", _named(one, facts)),), column=one.name)


def _unusable(one: ColumnFacts, facts: DataFacts) -> Finding:
    what = f"column {one.name} has type {one.type}, which cannot be used as "
    if one.name in facts.label.columns:
        return Finding("type", f"{what}labels", column=one.name)
    mends = (setting("ignore", _named(one, facts)),)
    return Finding("type", f"{what}features", mends, column=one.name)


def _mixed(one: ColumnFacts, facts: DataFacts) -> Finding:
    word, row = one.first_word or ("", 0)
    what = (
        f"column {one.name} mixes {one.numbers:,} numbers and {one.words:,} words; the first is "
        f"'{word[:20]}' in row {row + 1:,}. If it is in the first 8,192 rows, each number is a "
        f"category; if it comes later, reading ends there"
    )
    advice = (
        "replace the words by empty cells; the option leaves out rows with words that come late"
    )
    return Finding(
        "mixed", what, (setting("on_bad_line", "skip"),), advice, True, _named(one, facts)
    )


def _dates(dates: Sequence[ColumnFacts], facts: DataFacts) -> list[Finding]:
    """Return findings about dates: only typed tables know that they are dates."""
    if not dates:
        return []
    names = shortened([one.name for one in dates])
    plural = "columns hold" if len(dates) > 1 else "a column holds"
    what = f"{plural} dates: {names}. "
    if facts.file is None or facts.file.format != "csv":
        what += "Without the option, they are an error"
        return [Finding("dates", what, (setting("dates", "parts"),), column=dates[0].name)]
    many = [one for one in dates if one.distinct > _MANY_DATES * one.present]
    what += "In a CSV file, each date is one category"
    if many:
        what += ", and most rows have another"
    mends = tuple(setting("ignore", _named(one, facts)) for one in many)
    advice = "or make columns of year, month and weekday; --dates parts does it for Parquet files"
    return [Finding("dates", what, mends, advice, bool(many), dates[0].name)]


def _missing(columns: Sequence[ColumnFacts], facts: DataFacts) -> list[Finding]:
    if not columns:
        return []
    shown = [f"{one.name} ({one.missing:,})" for one in columns]
    cells = sum(one.missing for one in columns)
    what = f"{cells:,} cells are missing, in {shortened(shown)}"
    words: dict[str, int] = {}
    for one in columns:
        for word, times in one.missing_words:
            words[word] = words.get(word, 0) + times
    odd = [f"'{word}' ({times:,})" for word, times in words.items() if word not in _KNOWN_MISSING]
    advice = ""
    is_csv = facts.file is not None and facts.file.format == "csv"
    if odd and is_csv:
        what += f"; some are written as {shortened(odd)}"
        advice = "cells that CSV readers do not know as missing are words: empty them"
    numbers = any(one.kind in ("number", "date") for one in columns)
    settings = (setting("missing", "indicator"),) if numbers else ()
    return [Finding("missing", what, settings, advice, numbers or bool(advice), columns[0].name)]


def _scale(columns: Sequence[ColumnFacts]) -> list[Finding]:
    odd = [
        one
        for one in columns
        if one.ratio is not None and one.ratio > 0 and max(one.ratio, 1 / one.ratio) >= _FAR
    ]
    if not odd:
        return []
    odd.sort(key=lambda one: -max(one.ratio or 1.0, 1 / (one.ratio or 1.0)))
    shown = [f"{one.name} ({_times(one.ratio or 1.0)})" for one in odd]
    what = f"columns differ much in size from the median column: {shortened(shown)}"
    return [_of_scale(what, odd[0].name)]


def _of_scale(what: str, column: str | None = None) -> Finding:
    """Return the finding; the suggested command has the default rule, which needs no scaling."""
    settings = (setting("scale", "standard"),)
    return Finding("scale", what, settings, _OTHER_RULES, serious=False, column=column)


def _times(ratio: float) -> str:
    return f"{ratio:.2g} times larger" if ratio > 1 else f"{1 / ratio:.2g} times smaller"


def _useless(columns: Sequence[ColumnFacts], facts: DataFacts) -> list[Finding]:
    if not columns or not facts.rows.read:
        return []
    shown = [f"{one.name} ({one.kind})" for one in columns]
    what = f"columns without information: {shortened(shown)}"
    return [Finding("constant", what, serious=False, column=columns[0].name)]


def _named(one: ColumnFacts, facts: DataFacts) -> str:
    """Return how an option names a column: in a file without header, by its position."""
    named = facts.file is None or facts.file.is_named
    return one.name if named else str(one.position)


def _count(one: ColumnFacts) -> str:
    return f"{one.distinct:,}" if one.distinct_exact else f"about {one.distinct:,}"


def feature_findings(facts: DataFacts) -> list[Finding]:
    """Return what stands out in the features of sparse rows."""
    features = facts.features
    if features is None:
        return []
    found = []
    if features.odd:
        shown = [f"{name} ({_times(ratio)})" for name, ratio in features.odd]
        what = f"features differ much in size from the median feature: {shortened(shown)}"
        found.append(_of_scale(what))
    if features.not_finite:
        what = f"{features.not_finite:,} values are infinite or not numbers"
        found.append(Finding("infinite", what, (setting("on_bad_line", "skip"),)))
    if features.empty_rows:
        share = features.empty_rows / max(facts.rows.read, 1)
        what = f"{features.empty_rows:,} rows ({share:.1%}) have no features"
        found.append(Finding("empty rows", what, serious=False))
    return found
