"""scikit-learn's own checks, for every estimator."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

import thresher
from thresher.estimators import __all__ as ESTIMATORS

WEIGHTS_ARE_NOT_COPIES = {
    name: "a step of weight k is one long step, not k steps: the rows in between would have moved "
    "the prediction (scikit-learn's own SGD declares the same)"
    for name in (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
}


@parametrize_with_checks(
    [getattr(thresher, name)() for name in ESTIMATORS],
    expected_failed_checks=lambda estimator: WEIGHTS_ARE_NOT_COPIES,
)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    """One of scikit-learn's checks."""
    check(estimator)
