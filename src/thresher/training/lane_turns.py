"""How the lanes of a team are divided among threads, and when each thread works on which lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from itertools import pairwise
from threading import Event
from typing import Any, NamedTuple

import numpy as np

_UNEVEN = 1.1  # a part may exceed its equal share by this factor, to keep clocks whole
_SMALL = 0.05  # the smallest piece of a thread's work


class Piece(NamedTuple):
    """Some of the rows of a call, for one part of the lanes.

    Attributes
    ----------
    part : int
    begin, end : float
        The first and the last of these rows, as shares of all rows.
    """

    part: int
    begin: float = 0.0
    end: float = 1.0


@dataclass(frozen=True)
class Turns:
    """Parts of the lanes, for some threads.

    Lanes with the same clock are in one part: vectors of lanes work best with many lanes. If a
    clock does not fit into the equal share of a thread, two threads take turns: the thread after
    it begins with the first rows of that clock, and the thread before it ends with the last ones.
    So all threads have the same amount of work, and each lane learns its rows in order. A clock
    with more lanes than an equal share is divided into parts.

    Attributes
    ----------
    parts : list of list of int
        Numbers of lanes.
    threads : int

    Examples
    --------
    >>> turns = Turns.of([0, 0, 1, 1, 2, 2], 2)
    >>> turns.parts
    [[0, 1], [2, 3], [4, 5]]
    >>> [[tuple(piece) for piece in own] for own in turns.pieces([2.0, 2.0, 2.0])]
    [[(0, 0.0, 1.0), (1, 0.5, 1.0)], [(1, 0.0, 0.5), (2, 0.0, 1.0)]]
    >>> Turns.of([0, 1, 0, 1], 2).parts, Turns.of([0, 0, 0, 0], 2).parts
    ([[0, 2], [1, 3]], [[0, 1], [2, 3]])
    """

    parts: list[list[int]]
    threads: int

    @classmethod
    def of(cls, clocks: Sequence[int], threads: int) -> Turns:
        """Divide lanes with these clocks among threads.

        Parameters
        ----------
        clocks : sequence of int
            The clock of each lane.
        threads : int
        """
        numbers = np.asarray(clocks, np.int64)
        order = np.argsort(numbers, kind="stable")
        lanes = len(order)
        threads = max(1, min(threads, lanes))
        borders = [0, *(np.flatnonzero(np.diff(numbers[order])) + 1).tolist(), lanes]
        cuts = {0, lanes}  # where parts begin and end
        for thread in range(1, threads):
            cut = thread * lanes / threads
            near = min(borders, key=lambda border: abs(border - cut))
            low, high = next((a, b) for a, b in pairwise(borders) if a <= cut < b)
            if abs(near - cut) <= (_UNEVEN - 1) * lanes / threads:
                cuts.add(near)
            else:
                cuts |= {low, high} if high - low <= lanes / threads else {round(cut)}
        parts = [order[a:b].tolist() for a, b in pairwise(sorted(cuts))]
        return cls(parts or [[]], threads)  # no lanes: an empty part

    def pieces(self, work: Sequence[float]) -> list[list[Piece]]:
        """Return the pieces of each thread, in order (McNaughton's rule).

        Parameters
        ----------
        work : sequence of float
            The amount of work of each part.
        """
        most = max(sum(work) / self.threads, *work) if work else 0.0
        found: list[list[Piece]] = [[] for _ in range(self.threads)]
        thread, room = 0, most
        for part, own in enumerate(work):
            last = thread + 1 == self.threads
            if last or own - room <= _SMALL * most:
                found[thread].append(Piece(part))
                room -= own
            elif room <= _SMALL * most:
                thread, room = thread + 1, most - own
                found[thread].append(Piece(part))
            else:
                share = 1.0 - room / own  # of the next thread, which begins with it
                found[thread].append(Piece(part, share, 1.0))
                thread, room = thread + 1, most - share * own
                found[thread].append(Piece(part, 0.0, share))
        return found

    def run(
        self,
        pool: Executor,
        act: Callable[[int, int, int], Any],
        first: int,
        last: int,
        work: Sequence[float],
    ) -> list[list[Any]]:
        """Call act(part, first row, last row) for all pieces; return the results of each part.

        The results of a part are in the order of the rows. If a piece fails, later rows of its part
        are left out, all other pieces finish, and the error is raised.

        Parameters
        ----------
        pool : Executor
            With `threads` threads.
        act : callable
        first, last : int
        work : sequence of float
            The amount of work of each part.
        """
        done = [Event() for _ in self.parts]
        failed: set[int] = set()
        found: list[list[Any]] = [[] for _ in self.parts]
        errors: list[Exception] = []

        def run_pieces(own: Sequence[Piece]) -> None:
            for part, begin, end in own:
                if begin > 0.0:
                    done[part].wait()
                    if part in failed:
                        continue
                a, b = (first + round(share * (last - first)) for share in (begin, end))
                try:
                    found[part].append(act(part, a, b))
                except Exception as error:
                    failed.add(part)
                    errors.append(error)
                finally:
                    done[part].set()

        wait([pool.submit(run_pieces, own) for own in self.pieces(work)])
        if errors:
            raise errors[0]
        return found
