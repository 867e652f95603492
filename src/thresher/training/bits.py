"""Version numbers of the behaviours that decide the bits of a result.

A resumed run must be bit-identical to a run without interruption. If a change of the code changes
the bits of some results, it must also increase the number of the behaviour that has changed. A
checkpoint holds the numbers of all behaviours that its run depends on; if one of them differs now,
the checkpoint is refused. A number that is missing in a checkpoint is 1: the checkpoint is older
than the first change.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from thresher.errors import ModelFileError
from thresher.rules import RULES

FIRST = 1  # the number of a behaviour that has never changed

BITS: dict[str, int] = {
    "shuffling": 1,  # the order of rows within a block, and of blocks within a pass
    "hashing": 1,  # the function from the name of a feature to its number
    "summation": 1,  # the order in which products of a row, and losses of rows, are added
    "defaults": 1,  # the values of "auto"
    "comparison": 1,  # how a comparison splits rows and chooses parameters
    "weights": 2,  # what the weight of a row means; 1: one step, times the weight
}
RULE_BITS: dict[str, int] = {  # rules whose steps, state or automatic values have changed
    "adagrad": 2,  # l1
    "dual-averaging": 2,  # strength
    "hard-threshold": 3,  # n_nonzero; the step, which depended on the processor
    "mirror-descent": 2,  # eta0
}


def bits_of(
    rule: str, shuffle: bool, named: bool = False, weighted: bool = False
) -> dict[str, int]:
    """Return the behaviours that a run depends on, with their numbers.

    Parameters
    ----------
    rule : str
        A name of `thresher.rules.RULES`.
    shuffle : bool
        Whether rows are shuffled.
    named : bool
        Whether features have names.
    weighted : bool
        Whether rows have weights other than 1.

    Examples
    --------
    >>> sorted(bits_of("ftrl", shuffle=True))
    ['defaults', 'ftrl', 'shuffling', 'summation']
    """
    names = ["summation", "defaults"]
    names += ["shuffling"] if shuffle else []
    names += ["hashing"] if named else []
    names += ["weights"] if weighted and RULES[rule].repeats_rows else []
    return {name: BITS[name] for name in names} | {rule: RULE_BITS.get(rule, FIRST)}


def check_bits(
    saved: Mapping[str, int] | None,
    now: Mapping[str, int],
    path: str | os.PathLike[str],
    version: str,
) -> None:
    """Raise ModelFileError if the resumed run would not be bit-identical.

    Parameters
    ----------
    saved : mapping or None
        Behaviours with their numbers, from a checkpoint; None if it has none.
    now : mapping
        The numbers of this version; see `bits_of`.
    path : path
        The checkpoint, for the message.
    version : str
        The version of Thresher that wrote it.
    """
    before = {} if saved is None else saved
    for name in dict.fromkeys((*now, *before)):
        then, today = before.get(name, FIRST), now.get(name, FIRST)
        if then != today:
            raise ModelFileError(
                f"{os.fspath(path)}: written by Thresher {version}, whose results differ from this "
                f"version's in {name} ({then}, now {today}); finish it with that version, or start "
                f"again"
            )
