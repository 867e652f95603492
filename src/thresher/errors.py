"""The errors of Thresher.

`DataError`, `DivergenceError` and `CacheError` come from the core: a row is bad, the rate is too
high, or a cache is cut short or damaged. The other errors have facts: the parameter and its value,
what is allowed, the place of bad data, a hint. ``str(error)`` is the message for Python; the
command line makes its own message from the facts (`thresher.cli.render.errors`). A message names a
parameter by `setting`, so that Python and the command line can show it under different names.
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
    "DataWarning",
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

# The core makes these classes, without docstrings.
DataError.__doc__ = "A row cannot be learned or read: the message names the row and what is wrong."
DivergenceError.__doc__ = "The weights are no longer finite: the learning rate is too high."
CacheError.__doc__ = "A cache is cut short or damaged, or another version wrote it."


@dataclass(frozen=True)
class Setting:
    """A parameter in a message; made by `setting`.

    Parameters
    ----------
    name : str
        The parameter's name in Python.
    value : object
        The parameter's value; ``...`` if the message names only the parameter.
    call : str or None
        The function that has the parameter, if that is not clear.
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
    """Return a parameter for a message.

    Examples
    --------
    >>> print(setting("bits"), setting("store", "hashed"), setting("bits", call="scan"), sep=", ")
    bits, store='hashed', bits= in scan
    """
    return Setting(name, value, call)


Words: TypeAlias = str | tuple[str | Setting, ...]
"""A text, or a tuple of texts and settings that form one."""


class Explained(Exception):
    """An error with facts; the base of errors that Python code raises.

    The message is ``place: owner: what; hint``, with the parts that are given. Without `what` it is
    "PARAMETER must be ALLOWED; got VALUE".

    Parameters
    ----------
    what : str or tuple
        What is wrong: a text, or a tuple of texts and settings.
    place : str or None
        A file, or a line and column of a file.
    owner : str or None
        The class, function or rule that has the parameter. The shell does not show it.
    parameter : str or None
        The parameter's name in Python.
    value : object
        The value of the parameter; ``...`` if there is none.
    allowed : str or None
        The allowed values, as text after "must be".
    hint : str or tuple or None
        What the user can do.
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
        """Pickle the facts; if one cannot be pickled, only the message and the notes."""
        state = dict(vars(self))
        try:
            pickle.dumps(state)
        except Exception:
            state = {name: state[name] for name in ("__notes__",) if name in state}
        return type(self), (str(self),), state

    def worded(
        self, word: Callable[[Setting], str], owner: str | None = None, hint: Words | None = None
    ) -> str:
        """Return the message for Python or for the shell.

        Parameters
        ----------
        word : callable
            Returns the text for a setting.
        owner : str or None
            The class, function or rule that has the parameter, if the message shows it.
        hint : str or tuple or None
            A hint that replaces the error's own.
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
        """Return the error with a place added before its own."""
        facts = dict(vars(self))
        facts["place"] = place if self.place is None else f"{place}: {self.place}"
        facts.pop("__notes__", None)
        return type(self)(facts.pop("what"), **facts)


class ParameterError(Explained, ValueError):
    """A parameter has a value that is not allowed; the message says what is allowed.

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
        As for `Explained`.
    source : str
        The source.
    **facts
        As for `Explained`; `parameter` is the one that makes a second reading necessary, or the
        one that would make it unnecessary.
    """

    def __init__(self, what: Words | None = None, *, source: str = "", **facts: Any) -> None:
        self.source = source
        super().__init__(what, **facts)


class BalanceError(ParameterError):
    """Classes cannot have balanced weights: their numbers of rows are unknown before training."""


class SplitError(ParameterError):
    """A split of the rows by `cv` has no training rows, or no test rows."""


class InputError(Explained, DataError):
    """Python code found bad data: a `DataError` with facts."""


class LabelError(InputError):
    """With two classes, labels are neither -1 and 1 nor 0 and 1."""


class StepError(Explained, DivergenceError):
    """Training diverged because of a parameter: a `DivergenceError` with facts."""


class ModelFileError(Explained, ValueError):
    """A file is not a model or a checkpoint of this run, or is damaged; the message names it."""


class ClusterError(Explained, RuntimeError):
    """A cluster cannot be reached, or lost too many pieces; the message says what can be done."""


class DataWarning(Explained, UserWarning):
    """Something in the data leads to a bad model; the message says what, and what mends it.

    `what` has the numbers that were seen, `hint` names the setting that mends it. Subclasses name
    one problem each, so that `warnings.filterwarnings` can select it.

    Examples
    --------
    >>> warning = DataWarning("column 'review' has 990 different values in 1,000 rows",
    ...                       hint=("read it as text with ", setting("text", "review")))
    >>> print(warning)
    column 'review' has 990 different values in 1,000 rows; read it as text with text='review'
    """


class OutOfMemoryError(Explained, MemoryError):
    """There is not enough memory; the message says what would need less."""
