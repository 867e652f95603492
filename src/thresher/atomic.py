"""Changes that happen as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was if what is done inside fails or is interrupted.

    Its attributes are what they were; what they refer to must not be changed in place meanwhile.

    Parameters
    ----------
    estimator : object
        Any that keeps its attributes in ``__dict__``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from thresher.atomic import all_or_nothing
    >>> learner = SimpleNamespace(weight=1.0)
    >>> try:
    ...     with all_or_nothing(learner):
    ...         learner.weight = 2.0
    ...         learner.rows = 1 / 0
    ... except ZeroDivisionError:
    ...     print(learner)
    namespace(weight=1.0)
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
