"""Sums of scores in a checkpoint."""

import json

import numpy as np
import pytest

from thresher.training.scores import ScoreTally


@pytest.mark.parametrize("value", [0.0, 1.0 / 3, 1e300, np.inf, -np.inf])
def test_sums_survive_a_checkpoint(value):
    """Extended precision is kept, and infinite sums stay infinite."""
    tally, other = ScoreTally({}, "logistic", 2), ScoreTally({}, "logistic", 2)
    tally.sums = {"score": np.array([np.longdouble(value) + np.longdouble(1e-20)])}
    other.state = json.loads(json.dumps(tally.state))
    assert np.array_equal(other.sums["score"], tally.sums["score"])
