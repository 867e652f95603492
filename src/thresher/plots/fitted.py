"""Check that an estimator is fitted and of the right class.

Classes are given by name: displays are below estimators and searches, and do not import them.
"""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from thresher.errors import ParameterError

_PACKAGES = ("thresher", "sklearn")  # of the classes that can be named


def is_of(estimator: Any, *kinds: str) -> bool:
    """Tell whether an estimator is an instance of one of these classes.

    Parameters
    ----------
    estimator : object
    *kinds : str
        Names of classes of thresher or scikit-learn.

    Examples
    --------
    >>> from thresher import FTRLClassifier
    >>> from thresher.plots.fitted import is_of
    >>> is_of(FTRLClassifier(), "LinearEstimator"), is_of(3, "LinearEstimator")
    (True, False)
    """
    known = (kind for kind in type(estimator).__mro__ if kind.__module__.split(".")[0] in _PACKAGES)
    return any(kind.__name__ in kinds for kind in known)


def fitted(estimator: Any, kinds: tuple[str, ...], display: str, wanted: str) -> Any:
    """Return a fitted estimator of one of these classes; for a pipeline, its last step.

    Parameters
    ----------
    estimator : estimator or Pipeline
    kinds : tuple of str
        Names of classes, as in `is_of`.
    display : str
        The display, for the message.
    wanted : str
        Description of the classes, for the message.

    Raises
    ------
    ParameterError
        If it is of another class.
    NotFittedError
        If it is not fitted.
    """
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if isinstance(last, type) or not is_of(last, *kinds):
        what = last.__name__ if isinstance(last, type) else type(last).__name__
        raise ParameterError(f"{display}: estimator must be {wanted}; got {what}")
    check_is_fitted(last)
    return last
