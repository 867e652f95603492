"""`thresher convert`: write the rows of files in another format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.cli.render.output import show
from thresher.cli.steps.final_warnings import warn_of_bad_lines
from thresher.data.scan import scan
from thresher.data.writing import WRITTEN, format_of, write
from thresher.errors import ParameterError


def convert(files: Sequence[str], to: str | None, reading: dict[str, Any], quiet: bool) -> int:
    """Write all rows to the last file; return the exit code."""
    if len(files) < 2:
        raise ParameterError("convert needs files to read, and a file to write")
    *data, output = files
    if to is not None and to not in WRITTEN:
        raise ParameterError(f"--to must be one of {', '.join(WRITTEN)}; got {to!r}")
    to = to or format_of(output)
    source = scan(data, **reading)
    source.refuse_outputs(output)
    for note in source.notes:
        if not quiet:
            show(note, error=True)
    rows = write(source, output, to, at_end=lambda: warn_of_bad_lines(source))
    if not quiet:
        show(f"{rows:,} rows -> {output} ({to})", error=True)
    return 0
