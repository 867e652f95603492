r"""Docstrings of this project are plain text: they become text that Sphinx reads as it is meant.

Names such as ``coef_`` and signs such as ``|w|`` mean something else in reStructuredText. `name`
between single backticks is code. Members that come from other packages are left out.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

# Code that stays as it is, then what has to be quoted.
_PIECE = re.compile(
    r"(?P<code>``.+?``|:\w+:`[^`]+`|`[^`]+`_\b|<[^>\s]+>_)"
    r"|(?P<name>(?<!`)`[^`]+`(?!`))"
    r"|(?P<end>(?<=\w)_(?![\w`]))"
    r"|(?P<sign>\||(?<=\S)[*]|[*](?=\S))"
)


def plain(lines: list[str]) -> list[str]:
    r"""Return the lines of a docstring with what reStructuredText would misunderstand quoted.

    Examples
    --------
    >>> plain(["`coef_` is |w| of fit_", "    >>> a * b"])
    ['``coef_`` is \\|w\\| of fit\\_', '    >>> a * b']
    """
    found, block = [], None  # block: the indentation of a block of code
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent <= block:
            block = None
        if block is not None or line.lstrip().startswith((">>>", "...", "..")):
            found.append(line)
            continue
        after_code = number and lines[number - 1].lstrip().startswith((">>>", "..."))
        found.append(line if after_code else _PIECE.sub(_quoted, line))
        if line.rstrip().endswith("::"):
            block = indent
    return found


def _quoted(match: re.Match[str]) -> str:
    if match["code"]:
        return match[0]
    if match["name"]:
        return f"`{match[0]}`"
    return f"\\{match[0]}"


def _process(_: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = plain(lines)


def _skip(_: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    function = getattr(thing, "fget", thing)  # of a property
    home = (
        getattr(function, "__module__", None) or getattr(thing, "__objclass__", object).__module__
    )
    if callable(function) and not str(home).startswith("thresher"):
        return True
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what is done before numpydoc reads a docstring."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
