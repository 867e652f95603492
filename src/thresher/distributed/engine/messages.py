"""Messages from the driver to the pieces.

A `Message` makes all pieces of one kind take a step, and each of them returns a reply. A `Question`
is answered without a change of state. Every mode has its own messages, questions and replies:
frozen dataclasses, one for each step (`modes/*_messages.py`). Pieces dispatch on the class.

Messages are pickled on their way to a worker. They are not written to checkpoints.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Reply = TypeVar("Reply", covariant=True)


class Message(Generic[Reply]):
    """A step to take. `Reply` is the class of what each piece returns; None for nothing."""


class Question(Generic[Reply]):
    """A question that changes nothing. `Reply` is the class of each piece's answer."""


def array_bytes(message: Any) -> int:
    """Return the size of the arrays in a message or a reply; nothing else in them is large."""
    return sum(getattr(value, "nbytes", 0) for value in vars(message).values()) if message else 0
