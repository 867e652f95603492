"""The command that suits the data."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thresher.errors import Setting
from thresher.overview.facts import DataFacts
from thresher.overview.finding import Finding, option_text

__all__ = ["Suggestion", "suggest"]

# Options in the order of a command, each with whether it can be repeated.
_ORDER = (
    "format", "header", "delimiter", "quotes", "encoding", "zero_based", "label", "multilabel",
    "label_separator", "multiclass", "loss", "text", "ignore", "weight", "missing", "dates",
    "scale", "shuffle", "class_weight", "on_bad_line",
)  # fmt: skip
_REPEATED = ("text", "ignore")
_READING = (
    "format", "header", "delimiter", "quotes", "encoding", "zero_based", "label", "multilabel",
    "label_separator", "text", "ignore", "weight", "missing", "dates", "on_bad_line",
)  # fmt: skip


@dataclass(frozen=True)
class Suggestion:
    """The command that suits the data.

    Attributes
    ----------
    settings : tuple of (Setting, str)
        Each option, with the reason for it.
    files : tuple of str
        Empty for data in memory: there is no command then.
    possible : bool
        Whether a model can be trained with these data.
    filters : tuple of str
        Commands of the shell that mend a single file before.
    """

    settings: tuple[tuple[Setting, str], ...] = ()
    files: tuple[str, ...] = ()
    possible: bool = True
    filters: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command line; empty if the data are not in files or cannot be used."""
        if not self.files or not self.possible:
            return ""
        files = " ".join(shlex.quote(file) for file in self.files)
        before = ""
        if self.filters and len(self.files) == 1 and self.files[0] != "-":
            stem, suffix = os.path.splitext(self.files[0])
            mended = shlex.quote(f"{stem}-mended{suffix}")
            before = f"{' | '.join([f'{self.filters[0]} < {files}', *self.filters[1:]])} > {mended}"
            before, files = f"{before} && ", mended
        options = "".join(f" {option_text(one)}" for one, _ in self.settings)
        return f"{before}thresher train {files}{options} -m model.thresher"

    @property
    def reading(self) -> dict[str, Any]:
        """The options of reading, by their names in Python."""
        found: dict[str, Any] = {}
        for one, _ in self.settings:
            if one.name in _REPEATED:
                found.setdefault(one.name, []).append(one.value)
            elif one.name in _READING:
                found[one.name] = one.value
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the suggestion as JSON types."""
        return {
            "command": self.command,
            "options": [{"option": option_text(one), "reason": why} for one, why in self.settings],
        }


def suggest(facts: DataFacts, findings: Sequence[Finding]) -> Suggestion:
    """Return the command that suits the data, made of the options that findings name.

    Parameters
    ----------
    facts : DataFacts
    findings : sequence of Finding
    """
    named: dict[tuple[str, Any], tuple[Setting, str]] = {}
    for name, value in facts.reading.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one not in (None, False, "") and name in _ORDER:
                named[name, one if name in _REPEATED else None] = (
                    Setting(name, one),
                    "you gave it",
                )
    for finding in findings:
        if not finding.serious:
            continue
        for one in finding.settings:
            key = (one.name, one.value if one.name in _REPEATED else None)
            named.setdefault(key, (one, finding.what))
    ordered = sorted(named.values(), key=lambda pair: _ORDER.index(pair[0].name))
    possible = bool(facts.rows.read) and not any(
        one.name in ("no label", "format") for one in findings
    )
    plain = all(one.compression is None for one in facts.files)
    filters = tuple(one.filter for one in findings if one.filter and plain)
    return Suggestion(tuple(ordered), tuple(one.path for one in facts.files), possible, filters)
