"""Mode "columns": the margin perceptron on blocks of features equals its oracle, and the rule.

Bit for bit: values, rates and thresholds are multiples of powers of two, so that sums are exact.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.utils import check_random_state

from distributed_rows import untimed
from oracles.margin_columns import block_of, margin_columns
from thresher import MarginPerceptronClassifier, _core
from thresher.data.source import scan
from thresher.data.writing import write
from thresher.distributed import columns
from thresher.distributed.column_pieces import RowOrders
from thresher.distributed.columns import Columns
from thresher.distributed.crew import InProcess
from thresher.distributed.driving import ContinueLater, Driven, StageReport, drive
from thresher.distributed.folder import Folder
from thresher.distributed.pieces import Job, Learned
from thresher.distributed.rows import WholeFiles
from thresher.errors import DataError, DivergenceError, ModelFileError, ParameterError
from thresher.training.labels import Labels, ManyClasses, TwoClasses


@dataclass
class Data:
    """Rows, and what is learned from them."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    seed: int
    params: dict[str, Any]
    parts: int

    def job(self, place: str, labels: Labels | None = None, **changes: Any) -> Job:
        """Write the rows as VW text, a file for each part."""
        files, counts = [], []
        for part, rows in enumerate(np.array_split(np.arange(len(self.X)), self.parts)):
            file = Path(place, f"part-{part}.vw")
            file.write_text("".join(self.line(row) for row in rows))
            files.append([str(file)])
            counts.append(len(rows))
        estimator = MarginPerceptronClassifier(**self.params)
        job = Job(
            rule="margin-perceptron",
            task="classifier",
            params=estimator.get_params(),
            rows=WholeFiles(files, {"format": "vw"}),
            labels=labels or TwoClasses(),
            width=self.X.shape[1],
            counts=counts,
            seed=int(check_random_state(self.seed).randint(2**31)),
        )
        return replace(job, **changes)

    def line(self, row: int) -> str:
        weight = "" if self.weight is None else f" {self.weight[row]:g}"
        nonzero = np.flatnonzero(self.X[row])
        features = "".join(f" {j}:{self.X[row, j]!r}" for j in nonzero.tolist())
        return f"{self.y[row]:g}{weight} |{features}\n".replace("np.float64(", "").replace(")", "")

    def fit(self) -> MarginPerceptronClassifier:
        """Learn by the serial rule."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that all weights are zero
            estimator = MarginPerceptronClassifier(random_state=self.seed, **self.params)
            return estimator.fit(self.X, self.y, sample_weight=self.weight)


@st.composite
def datasets(draw: st.DrawFn, exact: bool = True, **fixed: Any) -> Data:
    """Draw rows of two classes, and parameters."""
    rows, width = draw(st.integers(4, 24)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    X = rng.integers(-12, 13, (rows, width)) / 8 if exact else rng.normal(size=(rows, width))
    X = X * (rng.random((rows, width)) < draw(st.sampled_from([0.2, 0.7])))
    y = np.where(np.arange(rows) < 2, [1.0, -1.0] * (rows // 2) + [1.0] * (rows % 2), 0.0)
    y[2:] = rng.choice([-1.0, 1.0], rows - 2)
    weight = draw(st.sampled_from([None, rng.choice([0.0, 0.5, 1.0, 2.0], rows)]))
    shrink = draw(st.sampled_from(["touched", "touched", "all"]))
    density = None if shrink == "all" else draw(st.sampled_from([None, None, 0.3, 0.8]))
    params = {
        "margin": draw(st.sampled_from([0.0, 0.125, 1.0])),
        "l1": draw(st.sampled_from([0.0, 1 / 64, 0.25])),
        "eta0": draw(st.sampled_from([0.5, 1.0])),
        "shrink": shrink,
        "max_density": density,
        "passes": draw(st.integers(1, 4)),
        "shuffle": draw(st.sampled_from(["each", "once", "replace", "blocks", False])),
        "fit_intercept": draw(st.booleans()),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
    }
    params |= fixed
    return Data(X, y, weight, draw(st.integers(0, 99)), params, draw(st.integers(1, 3)))


def run(job: Job, folder: Folder | None = None, benches: int = 1, **options: Any) -> Driven:
    """Learn in this process."""
    mode = pickle.loads(pickle.dumps(Columns(job, **options)))
    return drive(mode, InProcess(mode, folder, benches), folder, mode.every)


def same(first: Learned, second: Learned) -> bool:
    """Whether two results have the same bits."""
    one, other = first.outputs[0], second.outputs[0]
    return (
        one.keys.tobytes() == other.keys.tobytes()
        and one.weights.tobytes() == other.weights.tobytes()
        and one.intercept == other.intercept
        and first.facts == second.facts
    )


def dense(learned: Learned, width: int) -> np.ndarray:
    """Return all weights."""
    w = np.zeros(width)
    w[learned.outputs[0].keys.astype(int)] = learned.outputs[0].weights
    return w


# ---- what is learned ---------------------------------------------------------------------------


@given(data=datasets(), blocks=st.sampled_from([1, 2, 3, 8]), benches=st.integers(1, 3))
def test_a_batch_of_one_row_is_the_serial_rule(data: Data, blocks: int, benches: int) -> None:
    """The bits of `fit`: with weights of rows, any order, and a limit of density."""
    with tempfile.TemporaryDirectory() as folder:
        learned = run(data.job(folder), benches=benches, batch=1, blocks=blocks).learned
    serial = data.fit()
    learner = serial._learners[0]
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
    assert learned.facts["updates"] == serial._learners[0].facts()["updates"]


@given(data=datasets(exact=False, dtype="float64", shrink="touched"))
def test_one_block_is_the_serial_rule_to_the_bit(data: Data) -> None:
    """With any numbers at all: the sums are made in the same order."""
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
    benches=st.integers(1, 3),
)
def test_any_batch_is_the_oracle(data: Data, batch: int, blocks: int, benches: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        job = data.job(folder)
        driven = run(job, benches=benches, batch=batch, blocks=blocks)
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
    losses = [shown["loss"] for shown in driven.shown[1:]][: len(expected.scan_losses)]
    np.testing.assert_allclose(losses, expected.scan_losses, rtol=1e-9, atol=1e-12)


@given(keys=st.lists(st.integers(0, 2**64 - 1), min_size=1), blocks=st.integers(1, 9))
def test_blocks_of_keys(keys: list[int], blocks: int) -> None:
    """A key is in the block that the oracle says, wherever it stands; repeated keys add up."""
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


def test_blocks_are_of_like_sizes() -> None:
    """Numbers one after the other, and every eighth."""
    for keys in (range(8000), range(0, 64000, 8)):
        found = Counter(block_of(key, 8) for key in keys)
        assert max(found.values()) < 1.15 * min(found.values())


# ---- where pieces are, and what becomes of them ------------------------------------------------


@settings(max_examples=settings().max_examples // 2)
@given(data=datasets(), batch=st.sampled_from([3, 7]), kept=st.booleans(), draw=st.data())
def test_stopped_and_resumed_anywhere(data: Data, batch: int, kept: bool, draw: Any) -> None:
    """A run that goes on from the checkpoint of any stage ends with the same bits."""
    with tempfile.TemporaryDirectory() as folder, patch.object(columns, "_BATCHES", 2):
        job = data.job(folder)
        whole = run(job, batch=batch, blocks=3)
        checkpoint = Folder(f"{folder}/checkpoint")
        mode = Columns(replace(job, folder=checkpoint.path if kept else None), batch, 3)
        stage = draw.draw(st.integers(1, whole.stages))

        def watch(report: StageReport) -> bool:
            return report.stage == stage

        with pytest.raises(ContinueLater):
            drive(mode, InProcess(mode, checkpoint), checkpoint, 3, None, watch)
        committed = checkpoint.committed()
        assert committed is not None
        assert committed.stage == stage
        again = drive(mode, InProcess(mode, checkpoint, benches=2), checkpoint, 3, committed)
    assert same(again.learned, whole.learned)
    assert again.stages == whole.stages
    assert untimed(again.shown) == untimed(whole.shown)


@settings(max_examples=settings().max_examples // 2)
@given(
    data=datasets(passes=3, max_density=None),
    batch=st.sampled_from([3, 4]),
    every=st.integers(1, 3),
    benches=st.integers(1, 3),
    kept=st.booleans(),
    draw=st.data(),
)
def test_a_bench_that_forgets_its_pieces(
    data: Data, batch: int, every: int, benches: int, kept: bool, draw: Any
) -> None:
    """Its pieces are made again, and no others, and the result has the same bits."""
    with tempfile.TemporaryDirectory() as folder, patch.object(columns, "_BATCHES", 2):
        job = data.job(folder)
        whole = run(job, batch=batch, blocks=4)
        assume(whole.stages > 3)
        checkpoint = Folder(f"{folder}/checkpoint")
        mode = Columns(replace(job, folder=checkpoint.path if kept else None), batch, 4)
        crew = InProcess(mode, checkpoint, benches)
        lost = draw.draw(st.integers(0, benches - 1))
        at = draw.draw(st.integers(every, whole.stages - 1))
        remade: list[Any] = []

        def watch(report: StageReport) -> None:
            remade.extend(report.remade)
            if report.stage == at:
                crew.benches[lost]._held.clear()
                crew.benches[lost].shared.clear()

        again = drive(mode, crew, checkpoint, every, None, watch)
    assert same(again.learned, whole.learned)
    assert {number for kind, number in remade if kind == "range"} == set(crew.homes["range"][lost])
    assert {number for kind, number in remade if kind == "part"} <= set(crew.homes["part"][lost])


def small(tmp_path: Path, labels: Labels | None = None, **changes: Any) -> Job:
    """Return a job of a few rows, in two parts."""
    rng = np.random.default_rng(0)
    X = rng.integers(-8, 9, (20, 6)) / 8
    y = changes.pop("y", np.where(X[:, 0] > 0, 1.0, -1.0))
    params = {"passes": 3, **changes.pop("params", {})}
    return Data(X, y, None, 0, params, 2).job(str(tmp_path), labels, **changes)


def test_without_a_folder_all_begins_again(tmp_path: Path) -> None:
    mode = Columns(small(tmp_path), batch=2, blocks=3)
    whole = drive(mode, InProcess(mode, None), None, 1)
    crew, forgotten = InProcess(mode, None, benches=2), []

    def watch(report: StageReport) -> None:
        if report.stage == 2 and not forgotten:
            forgotten.append(True)
            crew.benches[1]._held.clear()

    assert same(drive(mode, crew, None, 1, None, watch).learned, whole.learned)
    assert forgotten


def test_rows_are_kept_in_a_file_and_not_in_states(tmp_path: Path) -> None:
    """And parts do not hold them once blocks have them."""
    checkpoint = Folder(str(tmp_path / "checkpoint"))
    job = small(tmp_path, folder=checkpoint.path)
    mode = Columns(job, blocks=2)
    crew = InProcess(mode, checkpoint)
    drive(mode, crew, checkpoint, 1)
    found = sorted(path.name for path in Path(checkpoint.path).glob("columns-*"))
    assert found == ["columns-00000-00000-of-00002", "columns-00000-00001-of-00002"]
    committed = checkpoint.committed()
    assert committed is not None
    assert set(checkpoint.read("range", 0, committed.stage)) == {"state:learner"}
    for (kind, _), held in crew.benches[0]._held.items():
        if kind == "part":
            assert held.outcome is not None
            assert not held.outcome.sent


def test_damaged_rows(tmp_path: Path) -> None:
    checkpoint = Folder(str(tmp_path / "checkpoint"))
    mode = Columns(small(tmp_path, folder=checkpoint.path), blocks=2)
    drive(mode, InProcess(mode, checkpoint), checkpoint, 1)
    file = Path(checkpoint.path, "columns-00000-00001-of-00002")
    content = file.read_bytes()
    other = Columns(replace(mode.job, counts=[10, 11]), blocks=2)
    with pytest.raises(ModelFileError, match=r"columns-00000-00000.*the 21 rows of this run"):
        InProcess(other, checkpoint).begin(checkpoint.committed())
    for damaged in (content[:-9], b"", b"x" * 100):
        file.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=r"columns-00000-00001.*damaged"):
            InProcess(mode, checkpoint).begin(checkpoint.committed())


# ---- classes, weights, stopping ----------------------------------------------------------------


def test_one_of_several_classes(tmp_path: Path) -> None:
    """Each output learns its class against all others, as `fit` does."""
    y = np.arange(20) % 3.0
    X = np.random.default_rng(0).integers(-8, 9, (20, 6)) / 8
    params = {"passes": 3, "dtype": "float64", "class_weight": {0: 2.0, 1: 0.5, 2: 1.0}}
    data = Data(X, y, None, 5, params, 2)
    serial = data.fit()
    for output in range(3):
        job = data.job(str(tmp_path), ManyClasses([0, 1, 2]), output=output)
        learned = run(job, batch=1, blocks=3).learned
        np.testing.assert_allclose(dense(learned, 6), serial.coef_[output], atol=1e-12)
        assert learned.outputs[0].intercept == pytest.approx(serial.intercept_[output])


def test_names_as_features(tmp_path: Path) -> None:
    """Keys of 64 bits, and the store of features seen alone."""
    file = tmp_path / "rows.vw"
    file.write_text("1 | red:1 big:0.5\n-1 | blue:1 big:0.25\n1 | red:0.5 18446744073709551615:1\n")
    job = small(tmp_path, width=0, counts=[3], rows=WholeFiles([[str(file)]], {"format": "vw"}))
    learned = run(job, batch=2, blocks=3).learned
    names = {_core.hash_name(name) for name in (b"red", b"big", b"blue")} | {2**64 - 1}
    assert set(learned.outputs[0].keys.tolist()) == names
    assert learned.outputs[0].keys.tolist() == sorted(names)


def test_rows_of_a_cache(tmp_path: Path) -> None:
    """And of text of another format: the same bits, rows are the same."""
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
    """As `fit` stops, by the progressive loss of scans."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(-8, 9, (60, 4)) / 8, rng.choice([-1.0, 1.0], 60)
    for tol in (0.0, 0.01, 0.5):
        data = Data(X, y, None, 1, {"passes": 30, "tol": tol, "patience": 2}, 2)
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
    """A matter of how many rows there are."""
    job = small(tmp_path)
    for rows, batch in ((20, 64), (1024, 64), (16000, 1000), (65536, 4096), (10**9, 4096)):
        assert Columns(replace(job, counts=[rows - 7, 7])).batch == batch


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "ftrl"}, "margin perceptron, a classifier; got ftrl"),
        ({"task": "regressor"}, "a classifier; got margin-perceptron, a regressor"),
        ({"params": {"levels": (0.5,)}}, "levels: mode='columns' keeps no models"),
        ({"params": {"max_density": 0.5}, "width": 0}, "max_density: a share of the features"),
    ],
)
def test_what_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Columns(small(tmp_path, **change))


@pytest.mark.parametrize("name", ["batch", "blocks"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "4", 1 << 31])
def test_numbers_out_of_range(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be a whole number from 1"):
        Columns(small(tmp_path), **{name: value})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 | 2:1 6:1", r"rows\.vw:3: feature number 6 is outside 0\.\.5"),
        ("1 | 2:1e30", r"rows\.vw:3: the value of feature 2 is .*finite squares"),
        ("2 | 2:1", r"rows\.vw:3:1: .*label"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "rows.vw"
    file.write_text(f"1 | 1:1\n-1 | 2:1\n{line}\n")
    job = small(tmp_path, counts=[3], rows=WholeFiles([[str(file)]], {"format": "vw"}))
    with pytest.raises(DataError, match=message):
        run(job)


def test_weights_that_diverge(tmp_path: Path) -> None:
    with pytest.raises(DivergenceError, match="values of the rows are too large; scale them"):
        run(small(tmp_path, params={"eta0": 1e30}))


def test_rows_that_were_counted_are_not_there(tmp_path: Path) -> None:
    job = small(tmp_path, counts=[10, 11])
    with pytest.raises(DataError, match="part 1 has 10 rows, and had 11"):
        run(job)


def test_classes_of_class_weight(tmp_path: Path) -> None:
    job = small(tmp_path, ManyClasses([-1, 1]), params={"class_weight": {7: 2.0}})
    with pytest.raises(ParameterError, match=r"class_weight has weights of \['7'\]"):
        run(job)
