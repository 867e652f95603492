"""What displays ask of estimators: to be of a kind that has what they draw, and fitted."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from thresher.errors import ParameterError


def fitted(estimator: Any, kinds: tuple[type, ...], display: str, wanted: str) -> Any:
    """Return a fitted estimator of one of these kinds; of a pipeline, the last step.

    Parameters
    ----------
    estimator : estimator or Pipeline
    kinds : tuple of type
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
    if isinstance(last, type) or not isinstance(last, kinds):
        what = last.__name__ if isinstance(last, type) else type(last).__name__
        raise ParameterError(f"{display}: estimator must be {wanted}; got {what}")
    check_is_fitted(last)
    return last
