"""Which of the papers' data sets are available."""

from __future__ import annotations

from collections.abc import Mapping

from thresher import datasets


def split(files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the names of the data sets whose files are available, and of the others.

    Parameters
    ----------
    files : mapping
        Names in `thresher.datasets`, by the names in the paper.
    """
    known = datasets.names()
    there = [name for name, file in files.items() if file in known]
    return there, [name for name in files if name not in there]
