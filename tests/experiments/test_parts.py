"""Parts of experiments: curves, comparisons of cells, missing data sets."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import ROOT

sys.path.insert(0, str(ROOT))  # experiments are not in the package

from experiments.numerically_stable.curves import Curve, chosen

from experiments import available

X, Y = sp.csr_matrix(np.eye(4)), np.ones(4)


def test_errors_use_the_last_model_if_it_is_sparse_enough() -> None:
    """The density may fall again below a level that an earlier model exceeded."""
    curve = Curve(4)
    for weights in ([1, 0, 0, 0], [1, -1, -1, 0], [1, 1, 0, 0]):
        assert not curve.see(np.array(weights, dtype=float), (0.25, 0.75, 1.0))
    assert curve.errors(X, Y, (0.25, 0.75, 1.0)) == [75.0, 50.0, 50.0]


def test_the_first_of_the_best_points_is_chosen() -> None:
    def learn(point: dict[str, float], seed: int) -> Curve:
        assert seed == 0
        return Curve(4, last=np.full(4, point["w"]))

    assert chosen(learn, [{"w": -1.0}, {"w": 1.0}, {"w": 2.0}], X, Y) == {"w": 1.0}
    assert chosen(learn, [{"w": -1.0}], X, Y) == {"w": -1.0}


def test_missing_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available.datasets, "names", lambda: ["rcv1_train", "dexter"])
    files = {"dexter": "dexter", "gisette": "gisette", "rcv1": "rcv1_train"}
    assert available.split(files) == (["dexter", "rcv1"], ["gisette"])


def test_comparison_of_cells() -> None:
    pytest.importorskip("matplotlib")
    from experiments.stabilized.error_sparsity_stability import _beside, _told, _verdict

    cells = [("a", "hinge"), ("b", "hinge")]
    values = {("a", "hinge"): {"x": 1.0, "y": 2.0}, ("b", "hinge"): {"x": 4.0, "y": 3.0}}
    true, told = _beside(cells, lambda cell, rule: values[cell][rule], "x", "y")
    assert true == [True, False]
    assert told == "1 of 2: a hinge 1 / 2; b hinge 4 / 3"
    assert [_verdict(true), _verdict(true, most=True)] == ["holds in part", "does not hold"]
    assert _verdict([True, True, False], most=True) == "holds"
    assert _verdict([]) == "not tested"
    assert _told({"eta0": 0.5, "gravity": 0.1, "passes": 5}) == "eta 0.5, passes 5, g_0 0.05"
