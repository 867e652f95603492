"""Mode "columns": blocks of features equal the oracle, and the rule on one machine.

The comparison is bit-identical: values, rates and thresholds are multiples of powers of two, so
sums are exact.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.margin_columns import block_of, margin_columns
from support.column_cases import Data, datasets, dense, run, same, small
from support.distributed_rows import WholeFiles
from thresher import _core
from thresher.data.labels import ManyClasses
from thresher.data.scan import scan
from thresher.data.writing import write
from thresher.distributed.modes.column_pieces import RowOrders
from thresher.distributed.modes.columns import ColumnsMode

# ---- results -------------------------------------------------------------------------------------


@given(data=datasets(heaviest=1.0), blocks=st.sampled_from([1, 2, 3, 8]), hosts=st.integers(1, 3))
def test_a_batch_of_one_row_is_the_serial_rule(data: Data, blocks: int, hosts: int) -> None:
    """It is bit-identical to `fit`, with row weights up to 1, any order, and a limit of density."""
    with tempfile.TemporaryDirectory() as folder:
        learned = run(data.job(folder), hosts=hosts, batch=1, blocks=blocks).learned
    serial = data.fit()
    learner = serial._fitted.outputs[0]
    np.testing.assert_array_equal(dense(learned, data.X.shape[1]), serial.coef_[0])
    assert learned.outputs[0].intercept == serial.intercept_[0]
    assert learned.facts["updates"] == learner.facts()["updates"]
    assert learned.facts["nonzeros"] == np.count_nonzero(serial.coef_)
    assert learned.facts["norm_bound"] == pytest.approx(learner.facts()["norm_bound"], rel=1e-5)


@given(data=datasets(max_density=None), batch=st.integers(1, 30))
def test_one_block_is_the_serial_rule_for_any_batch(data: Data, batch: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        learned = run(data.job(folder), batch=batch, blocks=1).learned
    serial = data.fit()
    np.testing.assert_array_equal(dense(learned, data.X.shape[1]), serial.coef_[0])
    assert learned.outputs[0].intercept == serial.intercept_[0]
    if data.weight is None:  # rows that made an update; the serial rule counts steps
        assert learned.facts["updates"] == serial._fitted.outputs[0].facts()["updates"]


@pytest.mark.parametrize("seed", range(5))
def test_a_scan_that_lacks_rows_does_not_end_the_run(seed: int) -> None:
    """With replacement, the only row with a weight may come in a later scan."""
    X = np.eye(4)
    weight = np.array([0.5, 0.0, 0.0, 0.0])
    params = {"passes": 40, "shuffle": "replace", "fit_intercept": False, "eta0": 0.5, "l1": 0.0}
    data = Data(X, np.array([1.0, -1.0, 1.0, -1.0]), weight, seed, params, 1)
    with tempfile.TemporaryDirectory() as folder:
        learned = run(data.job(folder), batch=1, blocks=1).learned
    serial = data.fit()
    assert serial.coef_[0, 0] > 0
    np.testing.assert_array_equal(dense(learned, 4), serial.coef_[0])


@given(data=datasets(exact=False, heaviest=1.0, dtype="float64", shrink="touched"))
def test_one_block_is_the_serial_rule_to_the_bit(data: Data) -> None:
    """This holds for any numbers, because sums are computed in the same order."""
    with tempfile.TemporaryDirectory() as folder:
        learned = run(data.job(folder), batch=1, blocks=1).learned
        blocks = run(data.job(folder), batch=1, blocks=5).learned
    serial = data.fit()
    np.testing.assert_array_equal(dense(learned, data.X.shape[1]), serial.coef_[0])
    assert learned.outputs[0].intercept == serial.intercept_[0]
    np.testing.assert_allclose(dense(blocks, data.X.shape[1]), serial.coef_[0], atol=1e-12)


@given(
    data=datasets(),
    batch=st.sampled_from([1, 2, 5, 16, 100]),
    blocks=st.sampled_from([1, 2, 3, 8]),
    hosts=st.integers(1, 3),
)
def test_any_batch_is_the_oracle(data: Data, batch: int, blocks: int, hosts: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        job = data.job(folder)
        driven = run(job, hosts=hosts, batch=batch, blocks=blocks)
    learned, orders, rows = driven.learned, RowOrders(job), np.arange(len(data.X))
    given_orders = [orders.of(scan) for scan in range(data.params["passes"])]
    params = {name: value for name, value in data.params.items() if name in (
        "margin", "l1", "shrink", "max_density", "fit_intercept", "dtype")}  # fmt: skip
    expected = margin_columns(
        data.X,
        data.y,
        [rows if order is None else order for order in given_orders],
        batch=batch,
        blocks=blocks,
        eta=data.params["eta0"],
        sample_weight=data.weight,
        **params,
    )
    np.testing.assert_array_equal(dense(learned, data.X.shape[1]), expected.weights)
    assert learned.outputs[0].intercept == expected.intercept
    assert learned.facts["updates"] == expected.updates
    stop = {"order": "passes"}.get(expected.stop, expected.stop)
    assert learned.facts["stop"] == stop
    norm = float((expected.weights.astype(float) ** 2).sum() + expected.intercept**2)
    assert norm <= learned.facts["norm_bound"] * (1 + 1e-5) + 1e-5
    if data.params["shrink"] == "touched":
        assert learned.facts["norm_bound"] == pytest.approx(expected.bound, rel=1e-5, abs=1e-5)
    squares = (data.X**2).sum(axis=1).max() + data.params["fit_intercept"]
    assert learned.facts["squared_radius"] == pytest.approx(squares)
    losses = [record["loss"] for record in driven.history[1:]][: len(expected.scan_losses)]
    np.testing.assert_allclose(losses, expected.scan_losses, rtol=1e-9, atol=1e-12)


@given(keys=st.lists(st.integers(0, 2**64 - 1), min_size=1), blocks=st.integers(1, 9))
def test_blocks_of_keys(keys: list[int], blocks: int) -> None:
    """A key is in the same block as in the oracle; values of repeated keys are added."""
    starts = np.array([0, len(keys)])
    words = np.array(keys, np.uint64).view(np.int64)
    batch = _core.sparse_batch(starts, words, np.ones(len(keys)), 0)
    cut, squares = _core.cut_columns(batch, "float64", 0, blocks, False)
    for block, (counts, found, values, reach) in enumerate(cut):
        mine = Counter(key for key in keys if block_of(key, blocks) == block)
        assert dict(zip(found.tolist(), values.tolist(), strict=True)) == mine
        assert counts.tolist() == [len(mine)]
        own = sum(count**2 for count in mine.values())
        assert reach[0] == (np.float32(squares / own) if own else 0)
    assert squares == sum(count**2 for count in Counter(keys).values())


def test_blocks_have_similar_sizes() -> None:
    """This holds for consecutive feature numbers, and for every eighth number."""
    for keys in (range(8000), range(0, 64000, 8)):
        found = Counter(block_of(key, 8) for key in keys)
        assert max(found.values()) < 1.15 * min(found.values())


# ---- classes, weights, stopping ------------------------------------------------------------------


def test_one_of_several_classes(tmp_path: Path) -> None:
    """Outputs are one-vs-rest, as in `fit`."""
    y = np.arange(20) % 3.0
    X = np.random.default_rng(0).integers(-8, 9, (20, 6)) / 8
    weights = {0: 2.0, 1: 0.5, 2: 1.0}
    params = {"passes": 3, "dtype": "float64", "class_weight": weights, "margin": 1.0}
    data = Data(X, y, None, 5, params, 2)
    serial = data.fit()
    for output in range(3):
        job = data.job(str(tmp_path), ManyClasses([0, 1, 2]), output=output)
        learned = run(job, batch=1, blocks=3).learned
        np.testing.assert_allclose(dense(learned, 6), serial.coef_[output], atol=1e-12)
        assert learned.outputs[0].intercept == pytest.approx(serial.intercept_[output])


def test_names_as_features(tmp_path: Path) -> None:
    """Keys of 64 bits, with a store of only the features seen."""
    file = tmp_path / "rows.vw"
    file.write_text("1 | red:1 big:0.5\n-1 | blue:1 big:0.25\n1 | red:0.5 18446744073709551615:1\n")
    job = small(tmp_path, width=0, counts=[3], rows=WholeFiles([[str(file)]], {"format": "vw"}))
    learned = run(job, batch=2, blocks=3).learned
    names = {_core.hash_name(name) for name in (b"red", b"big", b"blue")} | {2**64 - 1}
    assert set(learned.outputs[0].keys.tolist()) == names
    assert learned.outputs[0].keys.tolist() == sorted(names)


def test_rows_of_a_cache(tmp_path: Path) -> None:
    """A cache, and text in another format, give the same bits for the same rows."""
    job = small(tmp_path)
    files = [file for part in job.rows.files for file in part]
    write(scan(files), str(tmp_path / "rows.cache"), "cache")
    write(scan(files), str(tmp_path / "rows.svm"), "svmlight")
    expected = run(job, batch=4, blocks=3).learned
    for name in ("cache", "svm"):
        rows = WholeFiles([[str(tmp_path / f"rows.{name}")]], {})
        learned = run(replace(job, rows=rows, counts=[20]), batch=4, blocks=3).learned
        assert same(learned, expected)


def test_stopping_by_tol(tmp_path: Path) -> None:
    """The progressive losses of scans decide, as in `fit`."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(-8, 9, (60, 4)) / 8, rng.choice([-1.0, 1.0], 60)
    for tol in (0.0, 0.01, 0.5):
        data = Data(X, y, None, 1, {"passes": 30, "tol": tol, "patience": 2, "margin": 1.0}, 2)
        learned = run(data.job(str(tmp_path)), batch=1, blocks=2).learned
        serial = data.fit()
        assert learned.facts["scans"] == serial.n_iter_ < 30
        assert learned.facts["stop"] == "tol"
        np.testing.assert_allclose(dense(learned, 4), serial.coef_[0], atol=1e-5)


def test_stopping_without_an_update(tmp_path: Path) -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0]] * 4)
    data = Data(X, np.array([1.0, -1.0] * 4), None, 0, {"passes": 50, "margin": 0.5}, 1)
    learned = run(data.job(str(tmp_path)), batch=4, blocks=2).learned
    assert learned.facts["stop"] == "no update"
    assert learned.facts["scans"] < 50


def test_batches_by_default(tmp_path: Path) -> None:
    """The default depends on the number of rows."""
    job = small(tmp_path)
    for rows, batch in ((20, 64), (1024, 64), (16000, 1000), (65536, 4096), (10**9, 4096)):
        assert ColumnsMode(replace(job, counts=[rows - 7, 7])).batch == batch
