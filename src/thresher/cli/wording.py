"""Errors of the library in the words of the shell: options in place of parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from thresher.errors import ParameterError

_WORDS = (
    ("memory_limit", "--memory"),
    ("store='hashed'", "--store hashed"),
    ("bits= in scan", "--bits"),
    ("give scan bits=", "give --bits"),
    ("use fewer folds, or 'progressive'", "use fewer --folds"),
    ("use fewer or stratified splits, or leave the class out", "use fewer --folds"),
    ("the training part of split ", "the training part of fold "),
    ("cv: ", "--folds: "),
    ("scoring: neg_", "--scoring: "),
    ("scoring: ", "--scoring: "),
)


def in_words_of_the_shell(message: str) -> str:
    """Return a message with options where it has parameters of Python.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> from thresher.cli.wording import in_words_of_the_shell
    >>> in_words_of_the_shell("raise memory_limit, or use store='hashed'")
    'raise --memory, or use --store hashed'
    """
    for python, shell in _WORDS:
        if shell not in message:
            message = message.replace(python, shell)
    return message


@contextmanager
def shell_words() -> Iterator[None]:
    """Let errors of parameters and of memory speak of options."""
    try:
        yield
    except (ParameterError, MemoryError) as error:
        raise type(error)(in_words_of_the_shell(str(error))) from None
