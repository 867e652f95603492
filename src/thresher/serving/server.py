"""Runs the application with uvicorn, and stops it gracefully."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket
from collections.abc import Callable
from typing import Any

from thresher.errors import ParameterError, setting
from thresher.printable import printable
from thresher.serving.access import LOOPBACK, VARIABLE
from thresher.serving.application import Application
from thresher.serving.heads import protocol

_KEEP_ALIVE = 60  # seconds that an idle connection stays open
_GRACE = 30  # seconds to finish requests when the server stops


class _Lines(logging.Formatter):
    """One printable line for each record; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return printable(super().format(record), keep="\n" if record.exc_info else "")


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_host(host: str, token: str | None) -> tuple[str, ...]:
    """Return the names that the header Host may have; refuse a public host without a token.

    Parameters
    ----------
    host : str
    token : str or None
    """
    if token is not None:
        return ()
    if not is_loopback(host):
        raise ParameterError(
            f"{host} can be reached from other machines: requests must have a token",
            parameter="host",
            value=host,
            hint=("give ", setting("token_file"), f" or set {VARIABLE}"),
        )
    return (*LOOPBACK, host)


def run(
    application: Application,
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    access_log: bool = False,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP; then finish the requests that were begun.

    SIGHUP stays ignored if it is, as under nohup.

    Parameters
    ----------
    application : Application
    host : str
    port : int
        0: a free one.
    access_log : bool
        Write a line for each request.
    started : callable, optional
        Called with the address when the server accepts requests.
    """
    try:
        import uvicorn
    except ImportError:
        raise ParameterError(
            "serving needs uvicorn", hint="install it with pip install 'thresher[serve]'"
        ) from None

    _log_to_stderr(access_log)
    listener = _listener(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if started is not None:
                started(address)

    config: dict[str, Any] = {
        "log_config": None, "access_log": access_log, "lifespan": "on", "ws": "none",
        "proxy_headers": False, "server_header": False, "backlog": 2048,
        "timeout_keep_alive": _KEEP_ALIVE, "timeout_graceful_shutdown": _GRACE,
        "limit_concurrency": application.limits.connections,
        "http": protocol(application.limits.seconds),
    }  # fmt: skip
    server = Server(uvicorn.Config(application, **config))
    # uvicorn raises the signal that stopped it again. These handlers make that harmless.
    before = {one: signal.signal(one, _ignore) for one in (signal.SIGTERM, signal.SIGINT)}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, server.handle_exit)
    try:
        server.run([listener])
    finally:
        listener.close()
        for one, handler in before.items():
            signal.signal(one, handler)


def _ignore(number: int, frame: Any) -> None:
    pass


def _listener(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise OSError(error.errno, f"no such host: {error.strerror}", host) from None
    family, kind, protocol, _, address = found[0]
    # With the number of the protocol: else asyncio does not switch off Nagle's algorithm.
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise type(error)(error.errno, error.strerror, f"{host}:{port}") from None
    return listener


def _log_to_stderr(access_log: bool) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(message)s"))
    levels = {"thresher.serving": logging.INFO, "uvicorn.error": logging.WARNING}
    levels["uvicorn.access"] = logging.INFO if access_log else logging.WARNING
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
