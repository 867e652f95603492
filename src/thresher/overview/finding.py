"""One thing that stands out in the data."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from thresher.errors import Setting

__all__ = ["Finding", "option_text"]


@dataclass(frozen=True)
class Finding:
    """One thing that stands out in the data.

    Attributes
    ----------
    name : str
        Which sort of thing: the same word in all versions.
    what : str
        What was seen, in numbers.
    settings : tuple of Setting
        Options of `thresher train` that mend it.
    advice : str
        What to do if no option mends it, or besides.
    serious : bool
        Whether training would fail, or give a bad model.
    column : str or None
        The column that it is about.
    filter : str
        A command of the shell that mends the file, from standard input to standard output.
    """

    name: str
    what: str
    settings: tuple[Setting, ...] = ()
    advice: str = ""
    serious: bool = True
    column: str | None = None
    filter: str = ""

    @property
    def options(self) -> list[str]:
        """The options as they are written in a shell."""
        return [option_text(one) for one in self.settings]

    @property
    def mends(self) -> list[str]:
        """What mends it: options, a command, and words."""
        advice = f"{self.advice}: {self.filter}" if self.filter else self.advice
        return [*self.options, *([advice] if advice else [])]

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as JSON types; settings as the options of the shell."""
        return {
            "name": self.name,
            "what": self.what,
            "options": self.options,
            "advice": self.advice,
            "serious": self.serious,
            "column": self.column,
            "filter": self.filter,
        }


def option_text(one: Setting) -> str:
    """Return a setting as an option of the shell.

    Examples
    --------
    >>> from thresher.errors import setting
    >>> [option_text(setting(*pair)) for pair in
    ...     (("text", "my review"), ("shuffle", True), ("header", False), ("label", "a,b"))]
    ["--text 'my review'", '--shuffle', '--no-header', '--label a,b']
    """
    option = "--" + one.name.replace("_", "-")
    if one.value is True or one.value is ...:
        return option
    if one.value is False:
        return "--no-" + one.name.replace("_", "-")
    value = str(one.value)
    return f"{option} {value if value == ',' else shlex.quote(value)}"
