"""The paper's classification tasks, as it names and counts them (Table 2)."""

from __future__ import annotations

from typing import Any

from thresher import datasets

PAPER = "Xie, Fan, Verscheure, Ren 2010"
NEWSGROUPS = [
    "comp_vs_rec", "comp_vs_sci", "comp_vs_talk", "rec_vs_talk", "sci_vs_rec", "sci_vs_talk",
]  # fmt: skip
ALL = [*NEWSGROUPS, "rcv1", "webspam"]


def present(wanted: list[str]) -> list[str]:
    """Return those of the tasks whose files are there.

    Parameters
    ----------
    wanted : list of str
    """
    there = datasets.names()
    return [name for name in wanted if name in there]


def not_tested(wanted: list[str]) -> str:
    """Return a sentence about those whose files are not there.

    Parameters
    ----------
    wanted : list of str
    """
    there = present(wanted)
    absent = [name for name in wanted if name not in there]
    return f" Not tested, for want of their files: {', '.join(absent)}." if absent else ""


def load(name: str, unit_norm: bool = True) -> Any:
    """Return a task, split at random into as many rows as the paper has.

    Parameters
    ----------
    name : str
    unit_norm : bool
    """
    return datasets.load(name, unit_norm=unit_norm, split="random")
