"""Runs independent pieces of work on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    pool = ThreadPoolExecutor(threads)
    try:
        futures = [pool.submit(act, item) for item in items]
    finally:
        _finish(pool)
    return [future.result() for future in futures]


def _finish(pool: ThreadPoolExecutor) -> None:
    """Wait for all calls. Ctrl-C interrupts the wait, so it is repeated, and then raised."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            pool.shutdown()
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
