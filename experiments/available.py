"""Which of the papers' data sets have files here."""

from __future__ import annotations

from collections.abc import Mapping

from thresher import datasets


def split(files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the names of sets whose files are there, and of those whose are not.

    Parameters
    ----------
    files : mapping
        The files' names, as `thresher.datasets` has them, by the names in the paper.
    """
    known = datasets.names()
    there = [name for name, file in files.items() if file in known]
    return there, [name for name in files if name not in there]
