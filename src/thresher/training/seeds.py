"""Random seeds of training."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.errors import ParameterError, setting


def seed_of(random_state: Any, owner: str) -> int:
    """Return a seed drawn from scikit-learn's `random_state`.

    Parameters
    ----------
    random_state : int, RandomState or None
    owner : str
        The class that has the parameter, for messages.
    """
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise ParameterError(
            (setting("random_state"), f": {error}"),
            owner=owner,
            parameter="random_state",
            value=random_state,
        ) from error


def stream_seed(random_state: Any, owner: str) -> int:
    """Return the seed for shuffling the rows of a source.

    Parameters
    ----------
    random_state : int, RandomState or None
    owner : str
    """
    return int(np.random.default_rng(seed_of(random_state, owner)).integers(2**31))
