"""The table, as text for the terminal and in Markdown for the page."""

from __future__ import annotations

from collections.abc import Sequence

from speed.results import Result

HEADS = ("what a user calls", "ours", "peer", "ratio", "must", "reached", "peer is", "checked")
_NUMBERS = range(1, 5)  # columns aligned on the right


def seconds(value: float) -> str:
    """Return seconds with three digits and a fitting unit.

    Examples
    --------
    >>> seconds(1.23456), seconds(0.01234), seconds(0.0000312)
    ('1.23 s', '12.3 ms', '31.2 us')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{_three(value / size)} {unit}"
    return f"{_three(value / 1e-6)} us"


def _three(value: float) -> str:
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f}"


def cells(result: Result) -> list[str]:
    """Return the cells of a line.

    A ratio to a peer is how many times as fast we are; a ratio to a unit is how many units our
    call takes.
    """
    if not result.measured:
        why = f"skipped: {result.skipped}" if result.skipped else f"failed: {result.failed}"
        return [result.name, "", "", "", "", "", "", why]
    sign, times = ("at most ", "") if result.unit else ("", "x")
    return [
        result.name,
        seconds(result.ours),
        seconds(result.peer),
        f"{_three(result.ratio)}{times}",
        f"{sign}{result.must:g}{times}",
        "yes" if result.reached else "no",
        result.peer_name + (" (the unit)" if result.unit else ""),
        result.checked,
    ]


def text(results: Sequence[Result]) -> str:
    """Return the table for the terminal, one block for each area."""
    rows = [list(HEADS), *(cells(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS) - 1)]
    out, area = [_aligned(rows[0], widths)], None
    for result, row in zip(results, rows[1:], strict=True):
        if result.area != area:
            out += ["", f"[{result.area}]"]
            area = result.area
        out.append(_aligned(row, widths))
    return "\n".join(out)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    parts = [
        cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=False))
    ]
    return "  ".join([*parts, row[-1]]).rstrip()


def markdown(results: Sequence[Result]) -> str:
    """Return the table in Markdown."""
    rows = [list(HEADS), ["---"] * len(HEADS), *(cells(result) for result in results)]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
        for row in rows
    )


def summary(results: Sequence[Result]) -> str:
    """Count the lines that are reached, not reached, skipped and failed."""
    measured = [result for result in results if result.measured]
    counts = {
        "reached": sum(result.reached for result in measured),
        "not reached": sum(not result.reached for result in measured),
        "skipped": sum(bool(result.skipped) for result in results),
        "failed": sum(bool(result.failed) for result in results),
    }
    return f"{len(results)} line{'s' * (len(results) != 1)}: " + ", ".join(
        f"{n} {what}" for what, n in counts.items() if n
    )
