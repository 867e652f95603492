"""What displays ask of estimators: to be of a kind that has what they draw, and fitted.

Kinds are names of classes: displays lie below estimators and searches, and do not import them.
"""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from thresher.errors import ParameterError

_HOMES = ("thresher", "sklearn")  # packages whose classes count as kinds


def is_of(estimator: Any, *kinds: str) -> bool:
    """Tell whether an estimator is of one of these kinds, itself or by inheritance.

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
    known = (kind for kind in type(estimator).__mro__ if kind.__module__.split(".")[0] in _HOMES)
    return any(kind.__name__ in kinds for kind in known)


def fitted(estimator: Any, kinds: tuple[str, ...], display: str, wanted: str) -> Any:
    """Return a fitted estimator of one of these kinds; of a pipeline, the last step.

    Parameters
    ----------
    estimator : estimator or Pipeline
    kinds : tuple of str
        As of `is_of`.
    display : str
        Who asks.
    wanted : str
        What the kinds are called.

    Raises
    ------
    ParameterError
        If it is of another kind.
    NotFittedError
        If it is not fitted.
    """
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if isinstance(last, type) or not is_of(last, *kinds):
        what = last.__name__ if isinstance(last, type) else type(last).__name__
        raise ParameterError(f"{display}: estimator must be {wanted}; got {what}")
    check_is_fitted(last)
    return last
