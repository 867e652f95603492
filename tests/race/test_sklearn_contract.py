"""scikit-learn's own checks for the estimators that choose their rule."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from thresher import SparseClassifier, SparseRegressor

ROWS_STAY_WHOLE = {
    name: "a row is in one fold, whatever its weight; its copies may be in several folds"
    for name in (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
}

# A small race: what the checks need does not depend on the number of candidates.
FEW = {
    "candidates": [
        "ftrl, 5 passes",
        "coordinate-descent, 0.01 of the largest l1",
        "coordinate-descent, 0.1 of the largest l1, scaled columns",
    ],
    "folds": 2,
    "rows": 1000,
}


@parametrize_with_checks(
    [SparseClassifier(budget=FEW), SparseRegressor(budget=FEW)],
    expected_failed_checks=lambda estimator: ROWS_STAY_WHOLE,
)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    """Run one of scikit-learn's checks."""
    check(estimator)
