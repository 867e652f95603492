"""The command line: parse options, call the library, print results. Only this package prints."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator

__all__ = ["main", "program"]

_SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def program() -> None:
    """Run the command line as a program: after its end, signals do not change its exit code."""
    try:
        main()
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def main() -> None:
    """Run the command line; signals also end it while modules are being imported."""
    with _ended_by_signals():
        try:
            from thresher.cli.app import main as run

            run()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise SystemExit(130) from None


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does; those that are ignored stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        for number, handler in before.items():
            if handler == signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
