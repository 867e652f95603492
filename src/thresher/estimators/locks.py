"""A lock for each estimator: threads that share one learn their rows one after the other."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

# Not attributes of the estimators: locks cannot be pickled or copied.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_MAKING = threading.Lock()


def lock_of(estimator: Any) -> Any:
    """Return the lock of an estimator; the thread that has it may take it again.

    Parameters
    ----------
    estimator : estimator

    Examples
    --------
    >>> from thresher import FTRLClassifier
    >>> from thresher.estimators.locks import lock_of
    >>> clf = FTRLClassifier()
    >>> with lock_of(clf):
    ...     lock_of(clf) is lock_of(clf)
    True
    """
    with _MAKING:
        found = _LOCKS.get(estimator)
        if found is None:
            found = _LOCKS[estimator] = threading.RLock()
        return found
