"""Rows that an estimator or a way of training cannot learn: errors before training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

import thresher
from support.files import pipe
from thresher import OnePassSearchCV, ParameterError, SparsityPath, scan
from thresher.stability import StreamingStabilitySelection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
Y = X[:, 0] > 0
CLF = thresher.TruncatedGradientClassifier(passes=2, shuffle=False)
PIPELINE = Pipeline([("scale", MaxAbsScaler()), ("clf", CLF)])


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("kind", [np.array, csr_matrix, lambda Y: [[1], [1, 2]] * 30, "source"])
def test_rows_with_any_number_of_labels(kind: Any, tmp_path: Path) -> None:
    """Rules that need one label per row have the same error for all kinds of rows."""
    stabilized = thresher.StabilizedClassifier()
    for search in (
        OnePassSearchCV(stabilized, {"keep": [0.5]}),
        SparsityPath(thresher.CoordinateDescentClassifier()),
        StreamingStabilitySelection(CLF, pairs=2),
    ):
        rows: tuple[Any, ...]
        if kind == "source":
            (tmp_path / "sets.svm").write_text("1,2 1:1\n2 2:1\n" * 20)
            rows = (scan(tmp_path / "sets.svm", multilabel=True),)
        else:
            rows = X, kind((X[:, :3] > 0).astype(int))
        with pytest.raises(ParameterError, match="y must have one label per row"):
            search.fit(*rows)


@pytest.mark.usefixtures("untrained")
def test_lists_of_labels_of_different_lengths() -> None:
    """The error says how to make columns."""
    with pytest.raises(ParameterError, match="MultiLabelBinarizer"):
        OnePassSearchCV(CLF, {"gravity": [0.1]}).fit(X, [[1], [1, 2]] * 30)


@pytest.mark.usefixtures("untrained")
def test_a_store_that_lanes_do_not_have() -> None:
    """Lists of nonzero weights are only for the outputs of one model."""
    clf = thresher.TruncatedGradientClassifier(store="nonzero")
    with pytest.raises(ParameterError, match="store must be one of dense, hashed if"):
        StreamingStabilitySelection(clf, pairs=2).fit(X, Y)


@pytest.mark.usefixtures("untrained")
def test_a_pipeline_and_a_source() -> None:
    """The error says what to do instead."""
    for search in (OnePassSearchCV(PIPELINE, {"clf__gravity": [0.1]}), SparsityPath(PIPELINE)):
        with pytest.raises(ParameterError, match="a Pipeline needs rows in memory"):
            search.fit(scan(lambda: [(X, Y)]))


@pytest.mark.usefixtures("untrained")
def test_plain_fits_and_rows_that_can_be_read_once() -> None:
    """The error says why models are fitted one after the other."""
    ftrl = thresher.FTRLClassifier(passes=1)
    search = OnePassSearchCV(ftrl, {"target_nnz": [2]})
    with pytest.raises(ParameterError, match=r"read only once.*target_nnz must be None if models"):
        search.fit(pipe(X, Y.astype(int)))
    search.set_params(cv="progressive")
    with pytest.raises(ParameterError, match=r"cv='progressive' scores rows.*a number of folds"):
        search.fit(scan(lambda: [(X, Y.astype(int))]))
