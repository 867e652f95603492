"""Behaviours that decide the bits of a result, each with a number.

A run that is resumed must go on as it began: to the same bits as a run that was not interrupted. A
change of the code that changes the bits of some results raises the number of the behaviour that it
changes. A checkpoint holds the numbers of all behaviours that its run depends on, and a version
where one of them differs refuses it. A checkpoint without numbers, or without one of them, is from
before any was raised: they are all 1.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from thresher.errors import ModelFileError

FIRST = 1  # the number of a behaviour that has never changed

BITS: dict[str, int] = {
    "shuffling": 1,  # the order of rows within a block, and of blocks within a pass
    "hashing": 1,  # from the name of a feature to its number
    "summation": 1,  # the order in which products of a row, and losses of rows, are added up
    "defaults": 1,  # what "auto" stands for
    "comparison": 1,  # how a comparison splits rows and chooses parameters
}
RULE_BITS: dict[str, int] = {}  # of rules whose steps, or what they keep between two, have changed


def bits_of(rule: str, shuffle: bool, named: bool = False) -> dict[str, int]:
    """Return the behaviours that a run depends on, with their numbers.

    Parameters
    ----------
    rule : str
        A name of `thresher.rules.RULES`.
    shuffle : bool
        Whether rows are shuffled.
    named : bool
        Whether features have names.

    Examples
    --------
    >>> sorted(bits_of("ftrl", shuffle=True))
    ['defaults', 'ftrl', 'shuffling', 'summation']
    """
    names = ["summation", "defaults"]
    names += ["shuffling"] if shuffle else []
    names += ["hashing"] if named else []
    return {name: BITS[name] for name in names} | {rule: RULE_BITS.get(rule, FIRST)}


def check_bits(
    saved: Mapping[str, int] | None,
    now: Mapping[str, int],
    path: str | os.PathLike[str],
    version: str,
) -> None:
    """Raise ModelFileError where a run cannot be resumed to the same bits.

    Parameters
    ----------
    saved : mapping or None
        Behaviours with their numbers, from a checkpoint; None where it has none.
    now : mapping
        Those of this version; see `bits_of`.
    path : path
        Of the checkpoint, as the error names it.
    version : str
        The version of Thresher that wrote it.
    """
    before = {} if saved is None else saved
    for name in dict.fromkeys((*now, *before)):
        then, today = before.get(name, FIRST), now.get(name, FIRST)
        if then != today:
            raise ModelFileError(
                f"{os.fspath(path)}: begun by Thresher {version}, where {name} gave other bits "
                f"than now ({then}, now {today}); finish it with that version, or start again"
            )
