"""Limits of the head of a request: its size, and the time in which it must come.

The server reads the head before the application can refuse anything, so also without a token.
"""

from __future__ import annotations

import asyncio
from typing import Any

from thresher.serving.messages import encoded
from thresher.serving.refusal import Refusal

_LARGEST = 1 << 16  # bytes of a head, or of what follows the last chunk of a body
_WORDS = {408: "Request Timeout", 431: "Request Header Fields Too Large"}


def protocol(seconds: float) -> Any:
    """Return the class of uvicorn's connections, with limits; "auto" without httptools.

    Parameters
    ----------
    seconds : float
        Time in which a head must come.
    """
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return "auto"

    class Connection(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _bytes = 0  # since the last begin of a request or a chunk, without those of bodies

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, self._late)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            self._bytes += len(data)
            super().data_received(data)
            if self._bytes > _LARGEST and not self.transport.is_closing():
                self._refuse(431, f"the head of a request may have {_LARGEST:,} bytes")

        def on_message_begin(self) -> None:
            self._bytes = 0
            if self._timer is None:
                self._timer = self.loop.call_later(seconds, self._late)
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._bytes = 0
            self._stop_timer()
            super().on_headers_complete()

        def on_chunk_header(self) -> None:
            self._bytes = 0

        def on_body(self, body: bytes) -> None:
            self._bytes = max(0, self._bytes - len(body))
            super().on_body(body)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._timer = None
            text = f"the head of the request did not come within {seconds:g} seconds"
            self._refuse(408, text)

        def _refuse(self, status: int, text: str) -> None:
            """Close the connection; say why, if no other answer is being sent."""
            if self.cycle is None or self.cycle.response_complete:
                body = encoded(Refusal(status, text).body())
                head = (
                    f"HTTP/1.1 {status} {_WORDS[status]}\r\ncontent-type: application/json\r\n"
                    f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
                )
                self.transport.write(head.encode() + body)
            self.transport.close()

    return Connection
