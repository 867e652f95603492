"""Limits of one request, and of all together."""

from __future__ import annotations

from dataclasses import dataclass

from thresher.errors import ParameterError


@dataclass(frozen=True)
class Limits:
    """What a request may ask for. A request that asks for more gets a 4xx or 503 answer.

    Attributes
    ----------
    body : int
        Bytes of the body of a request.
    rows : int
        Rows of a request.
    numbers : int
        Numbers of an answer: rows times classes, if probabilities of all classes are asked for.
    seconds : float
        Time to receive the head of a request, time to receive its body, and time to compute an
        answer.
    connections : int
        Requests and idle connections at the same time.

    Examples
    --------
    >>> Limits(rows=100).rows
    100
    >>> Limits(rows=0)
    Traceback (most recent call last):
        ...
    thresher.errors.ParameterError: rows must be >= 1; got 0
    """

    body: int = 16 << 20
    rows: int = 10_000
    numbers: int = 1_000_000
    seconds: float = 30.0
    connections: int = 1000

    def __post_init__(self) -> None:
        """Raise ParameterError if a limit is not positive."""
        for name, value in vars(self).items():
            if name != "seconds" and value < 1:
                raise ParameterError(parameter=name, value=value, allowed=">= 1")
        if not self.seconds > 0:
            raise ParameterError(parameter="seconds", value=self.seconds, allowed="> 0")
