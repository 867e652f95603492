"""Requests and answers, and the body of a request as it comes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple

from thresher.serving.question import JSON
from thresher.serving.refusal import Refusal

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CLOSE = ((b"connection", b"close"),)  # the rest of the body is not read


class Gone(Exception):
    """The client has left before its request was complete."""


class Reply(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Request(NamedTuple):
    """A request; `body` waits for its body."""

    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    body: Callable[[], Awaitable[bytes]]


def encoded(value: Any) -> bytes:
    """Return JSON; numbers have all their digits."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


async def received(headers: Mapping[bytes, bytes], receive: Receive, most: int) -> bytes:
    """Return the body of a request; refuse one that is too long, if possible before it comes."""
    announced = headers.get(b"content-length", b"0")
    if announced.isdigit() and int(announced[:20]) > most:
        raise Refusal(413, f"the body has {int(announced[:20]):,} bytes; a request may have "
                      f"{most:,}", CLOSE)  # fmt: skip
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refusal(415, "the body must not be compressed", CLOSE)
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise Refusal(413, f"the body has more than {most:,} bytes", CLOSE)
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)
