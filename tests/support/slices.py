"""A part of the cases of a parametrized test; the others run in `make soak` only."""

from collections.abc import Iterable
from typing import Any

import pytest


def sliced(cases: Iterable[Any], *kept: int) -> list[Any]:
    """Return all cases; those at other places than `kept` get the mark `soak`."""
    listed = list(cases)
    assert all(place < len(listed) for place in kept)
    return [case if place in kept else _soak(case) for place, case in enumerate(listed)]


def _soak(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.soak)
