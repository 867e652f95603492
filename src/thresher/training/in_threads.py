"""Runs independent pieces of work on threads."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(act: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """Return ``[act(item) for item in items]``, computed by several threads.

    If some calls fail, all others finish first; then the exception of the first of them is raised.
    On Ctrl-C all calls finish first too.

    Parameters
    ----------
    act : callable
        Releases the GIL during its work, and shares no state with the other calls.
    items : sequence
    threads : int

    Examples
    --------
    >>> from thresher.training.in_threads import in_threads
    >>> in_threads(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    threads = min(threads, len(items))
    if threads < 2:
        return [act(item) for item in items]
    with _later_interrupts(), ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(act, item) for item in items]
    return [future.result() for future in futures]


@contextmanager
def _later_interrupts() -> Iterator[None]:
    """Handle Ctrl-C at the end of the block: it must not interrupt the wait for the threads."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    caught: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: caught.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        before(*caught[0])
