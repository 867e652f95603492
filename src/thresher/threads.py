"""The number of threads: the one place that decides it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from thresher.errors import ParameterError

VARIABLES = ("THRESHER_NUM_THREADS", "OMP_NUM_THREADS")  # the first one that is set counts


def available_threads() -> int:
    """Return the number of threads that this process may use.

    It is the number of processors that the process may run on, and at most the environment
    variable ``THRESHER_NUM_THREADS``, or ``OMP_NUM_THREADS`` if the first is not set. joblib sets
    the second in its worker processes.

    Examples
    --------
    >>> import os
    >>> from thresher.threads import available_threads
    >>> 1 <= available_threads() <= os.cpu_count()
    True
    """
    limit = _limit(os.environ)
    return 1 if limit == 1 else min(_processors(), limit or _processors())


def threads_of(n_jobs: int | None, owner: str | None = None) -> int:
    """Return the number of threads for a parameter `n_jobs`.

    None means 1, and a positive number means itself. -1 means all available threads, -2 all but
    one, and so on.

    Parameters
    ----------
    n_jobs : int or None
    owner : str, optional
        The function that takes `n_jobs`, for the message.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not _is_whole(n_jobs) or n_jobs == 0:
        raise ParameterError(
            owner=owner,
            parameter="n_jobs",
            value=n_jobs,
            allowed="None, at least 1, or -1 for all",
        )
    return int(n_jobs) if n_jobs > 0 else max(1, available_threads() + 1 + int(n_jobs))


def jobs_of(n_jobs: int | None, owner: str | None = None) -> int | None:
    """Return `n_jobs` for joblib: None stays None, so that ``joblib.parallel_config`` counts.

    Parameters
    ----------
    n_jobs, owner
        As for `threads_of`.
    """
    return None if n_jobs is None else threads_of(n_jobs, owner)


def threads_for(work: int, enough: int) -> int:
    """Return the number of threads for work whose results do not depend on it.

    Parameters
    ----------
    work : int
        The size of the work, in any unit.
    enough : int
        A thread is used for each `enough` units of work: below, starting it would take longer.
    """
    return 1 if work < 2 * enough else min(available_threads(), work // enough)


def _limit(environment: Mapping[str, str]) -> int | None:
    """Return the limit that the environment sets; "4,2" of nested OpenMP loops means 4."""
    for name in VARIABLES:
        text = environment.get(name, "").split(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return int(text)
    return None


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_whole(number: Any) -> bool:
    return hasattr(number, "__index__")
