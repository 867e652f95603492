"""A request that is refused: the status, the reason and the place."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that gets an answer with an error.

    Parameters
    ----------
    status : int
        The status of HTTP.
    message : str
        What is wrong, and what is allowed.
    headers : sequence of pairs of bytes
        More headers of the answer.
    **place
        Where it is wrong: `row` (from 1), `feature`, `column` (from 1), `line`, `option`.

    Examples
    --------
    >>> Refusal(422, "nan is not a finite number", row=3, feature="age").body()
    {'error': {'message': 'nan is not a finite number', 'row': 3, 'feature': 'age'}}
    """

    def __init__(
        self,
        status: int,
        message: str,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        **place: int | str | None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers
        self.place = {name: value for name, value in place.items() if value is not None}

    def body(self) -> dict[str, Any]:
        """Return the answer as JSON types."""
        return {"error": {"message": self.message, **self.place}}
