"""A fixture of the tests of searches."""

from __future__ import annotations

from typing import Any

import pytest

from thresher.training.lanes import LaneTeam


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model may learn."""

    def learn(*_: Any, **__: Any) -> None:
        raise AssertionError("a model has begun to learn")

    monkeypatch.setattr(LaneTeam, "learn", learn)
