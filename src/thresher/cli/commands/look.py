"""`thresher look`: what files are, before training."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from thresher.cli.render.output import check_output, show, show_lines, show_record
from thresher.cli.render.reading_progress import ReadingProgress
from thresher.cli.steps.check_outputs import check_outputs
from thresher.errors import ParameterError
from thresher.overview import look as look_at

_TABS = {"tab": "\t", "\\t": "\t", "space": " "}


def look(
    data: Sequence[str],
    rows: int | None,
    all_rows: bool,
    label: str | None,
    reading: Mapping[str, Any],
    as_json: bool,
    html: str | None,
    quiet: bool,
) -> int:
    """Show what the files are; return the exit code."""
    if all_rows and rows is not None:
        raise ParameterError("give --rows or --all, not both")
    known = dict(reading)
    delimiter = known.get("delimiter")
    if delimiter is not None:
        known["delimiter"] = _TABS.get(delimiter, delimiter)
        if len(known["delimiter"]) != 1:
            raise ParameterError(
                parameter="delimiter", value=delimiter, allowed="one character, or tab"
            )
    check_outputs({"--html": html}, {})
    if as_json or (html is None and not quiet):
        check_output()
    progress = ReadingProgress(data, quiet)
    try:
        found = look_at(
            list(data),
            label=label,
            max_rows=None if all_rows else rows or "auto",
            on_progress=progress,
            **known,
        )
    finally:
        progress.close()
    if html is not None:
        if any(os.path.exists(one) and os.path.realpath(one) == os.path.realpath(html)
               for one in data):  # fmt: skip
            raise ParameterError(f"{html} is an input file: it cannot be an output too")
        found.report(html)
    if as_json:
        show_record(json.dumps(found.to_json(), allow_nan=False))
    elif not quiet:
        show_lines(found)
    if html is not None and not quiet:
        show(f"page: {html}", error=True)
    return 0
