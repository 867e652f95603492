"""The paper's classification tasks, with its names and numbers of rows (Table 2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments import available
from thresher import datasets

PAPER = "Xie, Fan, Verscheure, Ren 2010"
NEWSGROUPS = [
    "comp_vs_rec", "comp_vs_sci", "comp_vs_talk", "rec_vs_talk", "sci_vs_rec", "sci_vs_talk",
]  # fmt: skip
ALL = [*NEWSGROUPS, "rcv1", "webspam"]


RAW, UNIT = "tf-idf", "rows of norm 1"  # how words are weighted


def split(wanted: list[str]) -> tuple[list[str], list[str]]:
    """Return the tasks whose files are available, and the others.

    Parameters
    ----------
    wanted : list of str
    """
    return available.split({name: name for name in wanted})


def span(values: Iterable[float | None], form: str = ".3f") -> str:
    """Return the smallest and the largest value as text.

    Parameters
    ----------
    values : iterable of float or None
    form : str
        Of the numbers.
    """
    known = [value for value in values if value is not None]
    return f"{min(known):{form}} to {max(known):{form}}"


def load(name: str, unit_norm: bool = True) -> Any:
    """Return a task, split at random into the paper's numbers of rows.

    Parameters
    ----------
    name : str
    unit_norm : bool
    """
    return datasets.load(name, unit_norm=unit_norm, split="random")
