"""What can go wrong, by who has to act.

`DataError`, `DivergenceError` and `CacheError` come from the core: a row is bad, the rate is too
high, or a cache is cut or damaged. The others carry facts: which parameter has which value, what
is allowed, where the data are bad, what can be done. ``str(error)`` words these facts for Python;
the command line words them for the shell (`thresher.cli.render.errors`). A message names a
parameter by `setting`, so that both can name it in their own way.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from thresher._core import CacheError, DataError, DivergenceError

__all__ = [
    "BalanceError",
    "CacheError",
    "ClusterError",
    "DataError",
    "DivergenceError",
    "Explained",
    "InputError",
    "LabelError",
    "ModelFileError",
    "OutOfMemoryError",
    "ParameterError",
    "ReadOnceError",
    "Setting",
    "SplitError",
    "StepError",
    "Words",
    "setting",
]


@dataclass(frozen=True)
class Setting:
    """A parameter inside a message; made by `setting`.

    Parameters
    ----------
    name : str
        The parameter's name in Python.
    value : object
        A value of it; ``...`` where the message is of the parameter alone.
    call : str or None
        The function that takes it, where that is not clear.
    """

    name: str
    value: Any = ...
    call: str | None = None

    def __str__(self) -> str:
        text = self.name if self.value is ... else f"{self.name}={self.value!r}"
        if self.call is None:
            return text
        return f"{text}{'=' if self.value is ... else ''} in {self.call}"


def setting(name: str, value: Any = ..., call: str | None = None) -> Setting:
    """Return a parameter to be named in a message.

    Examples
    --------
    >>> print(setting("bits"), setting("store", "hashed"), setting("bits", call="scan"), sep=", ")
    bits, store='hashed', bits= in scan
    """
    return Setting(name, value, call)


Words: TypeAlias = str | tuple[str | Setting, ...]
"""A text, or pieces of one, of which some are settings."""


class Explained(Exception):
    """An error that carries facts; the base of errors that Python code raises.

    The message is ``place: owner: what; hint``, of those that are given. Without `what` it says
    that the parameter must be what is allowed, and which value it got.

    Parameters
    ----------
    what : str or tuple
        What is wrong: a text, or pieces of a text and settings.
    place : str or None
        Where: a file, or a line and column of one.
    owner : str or None
        Whose parameter it is: a class, a function or a rule. The shell leaves it out.
    parameter : str or None
        The parameter's name in Python.
    value : object
        What it got; ``...`` where there is no value.
    allowed : str or None
        What it may be, as it follows "must be".
    hint : str or tuple or None
        What can be done.
    """

    def __init__(
        self,
        what: Words | None = None,
        *,
        place: str | None = None,
        owner: str | None = None,
        parameter: str | None = None,
        value: Any = ...,
        allowed: str | None = None,
        hint: Words | None = None,
    ) -> None:
        self.what, self.place, self.owner, self.hint = what, place, owner, hint
        self.parameter, self.value, self.allowed = parameter, value, allowed
        super().__init__(self.worded(str, owner))

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the facts; if one cannot be pickled, keep the message and the notes."""
        state = dict(vars(self))
        try:
            pickle.dumps(state)
        except Exception:
            state = {name: state[name] for name in ("__notes__",) if name in state}
        return type(self), (str(self),), state

    def worded(
        self, word: Callable[[Setting], str], owner: str | None = None, hint: Words | None = None
    ) -> str:
        """Return the message of a front end.

        Parameters
        ----------
        word : callable
            Returns the front end's words for a setting.
        owner : str or None
            Whose parameter it is, where the front end says so.
        hint : str or tuple or None
            What is to be done, if the front end has words of its own for it.
        """

        def joined(words: Words) -> str:
            pieces = (words,) if isinstance(words, str) else words
            return "".join(p if isinstance(p, str) else word(p) for p in pieces)

        what = "" if self.what is None else joined(self.what)
        if self.what is None and self.parameter is not None:
            what = f"{word(Setting(self.parameter))} must be {self.allowed}"
            what += "" if self.value is ... else f"; got {self.value!r}"
        heads = "".join(f"{head}: " for head in (self.place, owner) if head is not None)
        advice = self.hint if hint is None else hint
        return heads + what + ("" if advice is None else f"; {joined(advice)}")

    def at(self, place: str) -> Self:
        """Return the error with the place in front."""
        facts = dict(vars(self))
        facts["place"] = place if self.place is None else f"{place}: {self.place}"
        facts.pop("__notes__", None)
        return type(self)(facts.pop("what"), **facts)


class ParameterError(Explained, ValueError):
    """A parameter has a value that is not allowed; the message says which are.

    Examples
    --------
    >>> error = ParameterError(parameter="bits", value=99, allowed="a whole number from 1 to 40")
    >>> print(error)
    bits must be a whole number from 1 to 40; got 99
    >>> error.parameter, error.value
    ('bits', 99)
    """


class ReadOnceError(ParameterError):
    """Rows are needed more than once, and their source can be read only once.

    Parameters
    ----------
    what : str or tuple
        As of `Explained`.
    source : str
        The source.
    **facts
        As of `Explained`; `parameter` is the one by which rows need not be read again, or the one
        for which they have to be.
    """

    def __init__(self, what: Words | None = None, *, source: str = "", **facts: Any) -> None:
        self.source = source
        super().__init__(what, **facts)


class BalanceError(ParameterError):
    """Classes cannot have balanced weights: how many rows each has is not known beforehand."""


class SplitError(ParameterError):
    """A split of the rows by `cv` leaves nothing to learn from, or nothing to score on."""


class InputError(Explained, DataError):
    """Bad data that Python code found: a `DataError` with facts."""


class LabelError(InputError):
    """A label is neither -1 nor 1, and neither 0 nor 1, where there are two classes."""


class StepError(Explained, DivergenceError):
    """Training diverged by steps that a parameter makes: a `DivergenceError` with facts."""


class ModelFileError(Explained, ValueError):
    """A file is not a model, or is damaged; the message names it."""


class ClusterError(Explained, RuntimeError):
    """A cluster cannot be reached, or lost too much; the message says what can be done."""


class OutOfMemoryError(Explained, MemoryError):
    """There is not enough memory; the message says what needs less."""
