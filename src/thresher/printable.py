"""Text of strangers, such as names of features and files, made safe to show on a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

__all__ = ["one_line", "one_lines", "printable"]

# Control characters (C0, C1 and DEL), format characters (among them those that change the direction
# of writing), lone surrogates, and separators of lines and paragraphs.
_ESCAPED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
# What ends a line for `str.splitlines`, and what UTF-8 cannot hold.
_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029\ud800-\udfff]")
_JOINERS = "\u200c\u200d"  # format characters within words of some languages, and within emoji


def printable(text: object, keep: str = "") -> str:
    r"""Return a text with every character visible that could control a terminal.

    Such characters become escape sequences of Python, such as ``\x1b``. A backslash stays as it is:
    the result is for people, not for programs.

    Parameters
    ----------
    text : object
        A text, or an object whose text is meant.
    keep : str
        Characters to keep, such as a line feed in a text of several lines.

    Examples
    --------
    >>> from thresher.printable import printable
    >>> print(printable("caf\xe9"), printable("\x1b[2Jprice\u202e"))
    café \x1b[2Jprice\u202e
    """
    words = str(text)
    if words.isprintable():
        return words
    return "".join(
        letter if letter in keep or not _controls(letter) else _escape(letter) for letter in words
    )


def one_line(text: str) -> str:
    r"""Return a text that takes one line of a file in UTF-8.

    Line breaks and lone surrogates become escape sequences of Python, such as ``\n``. All other
    characters stay as they are.

    Examples
    --------
    >>> from thresher.printable import one_line
    >>> print(one_line("yes\nno\u2028\t."))
    yes\nno\u2028	.
    """
    return _BREAKS.sub(lambda found: _escape(found[0]), text)


def one_lines(texts: Sequence[str]) -> Sequence[str]:
    r"""Return texts that each take one line of a file in UTF-8; fast if they do already.

    Examples
    --------
    >>> from thresher.printable import one_lines
    >>> print(*one_lines(["yes", "a\nb"]))
    yes a\nb
    """
    together = "".join(texts)
    if together.isprintable() or _BREAKS.search(together) is None:
        return texts
    return [one_line(text) for text in texts]


def _controls(letter: str) -> bool:
    if letter.isprintable() or letter in _JOINERS:
        return False
    return unicodedata.category(letter) in _ESCAPED


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
