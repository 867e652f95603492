"""The robust variant: one part is the rule on one machine, several parts equal the oracle."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles.robust import robust
from support.distributed_rows import WholeFiles
from support.robust_cases import SEED, InMemory, facts_of, mode_of, problem, run
from support.streams import Stream, streams
from thresher import StabilizedClassifier, _core, scan
from thresher.data.labels import ManyClasses
from thresher.distributed.engine.encoding import narrow_integers, pack_keys, unpack_keys
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.loop import StageReport, run_stages
from thresher.distributed.engine.pieces import ClusterJob
from thresher.distributed.modes.ranking import kth_largest
from thresher.distributed.modes.robust_stages import RobustStagesMode


@st.composite
def cuts(draw: st.DrawFn, rows: int, most: int = 3) -> list[int]:
    return sorted(draw(st.permutations(range(1, rows)))[: draw(st.integers(0, most - 1))])


# With a round rate and hinge loss, means of paths meet margins exactly, and rounding decides.
RATES = {"logistic": 1.0, "hinge": 0.9137, "squared_hinge": 0.25}

PARAMS = st.fixed_dictionaries(
    {
        "loss": st.sampled_from(["logistic", "hinge", "squared_hinge"]),
        "rejection": st.sampled_from([0.3, 0.5, 0.9]),
        "keep": st.sampled_from([0.0, 0.5, 0.8]),
        "min_updates": st.sampled_from([0, 1, 4]),
        "target_nnz": st.sampled_from([None, 1, 4]),
    }
).map(lambda params: params | {"eta0": RATES[params["loss"]]})


@given(
    data=st.data(), params=PARAMS, dtype=st.sampled_from(["float32", "float64"]),
    paths=st.sampled_from([2, 4]), ranges=st.integers(1, 3), hosts=st.integers(1, 3),
    threads=st.integers(1, 3), twins=st.booleans(),
)  # fmt: skip
def test_one_part_is_the_rule(
    data: st.DataObject, params: dict[str, Any], dtype: str, paths: int, ranges: int,
    hosts: int, threads: int, twins: bool,
) -> None:  # fmt: skip
    """It is bit-identical for any ranges, hosts, threads and blocks, even with equal scores."""
    stream = data.draw(streams("logistic"))
    if twins:
        stream = Stream(np.hstack([stream.X, stream.X]), stream.y, stream.weight, [])
    rows = InMemory(stream, block=data.draw(st.integers(1, 40)))
    mode = mode_of(rows, ranges, dtype=dtype, paths=paths, **params)
    model = _core.make_stabilized("robust", dtype, stream.width, mode.numbers, mode.words)
    model.learn(stream.batch(), 3, 0.0, 1, lambda stage: True)
    learned = run(mode, hosts, threads)
    keys, weights, intercept, evidence = facts_of(learned)
    assert keys == model.weights()[0].tolist()
    assert weights == model.weights()[1].tolist()
    assert intercept == model.intercept()
    names = ("features", "probability", "updates", "purged")
    for name, expected in zip(names, model.findings(), strict=True):
        assert evidence[f"evidence_{name}"] == expected.tolist()
    assert evidence["evidence_z"] == model.label_z().tolist()
    documents = np.count_nonzero(stream.X, axis=0)[evidence["evidence_features"]]
    assert evidence["evidence_documents"] == documents.tolist()


@given(
    data=st.data(), params=PARAMS, paths=st.sampled_from([6, 8]), ranges=st.integers(1, 3),
    hosts=st.integers(1, 3),
)  # fmt: skip
def test_parts_equal_oracle(
    data: st.DataObject, params: dict[str, Any], paths: int, ranges: int, hosts: int
) -> None:
    stream = data.draw(streams("logistic"))
    rows = InMemory(stream, data.draw(cuts(len(stream.y))))
    mode = mode_of(rows, ranges, paths=paths, **params)
    keys, weights, intercept, evidence = facts_of(run(mode, hosts))
    expected = robust(
        stream.X, stream.y, lambda path, number, rows: _core.path_order(SEED, path, number, rows),
        loss=params["loss"], eta=params["eta0"], paths=paths, keep=params["keep"],
        rejection=params["rejection"], min_updates=params["min_updates"],
        target=params["target_nnz"], passes=3, stage_steps=60, refit_steps=80,
        sample_weight=stream.weight, parts=rows.cuts, pairs=1,
    )  # fmt: skip
    assume(expected.margin > 1e-7)  # otherwise rounding decides about the number of features
    found = np.zeros(stream.width)
    found[keys] = weights
    np.testing.assert_allclose(found, expected.weights, rtol=0, atol=1e-8)
    assert intercept == pytest.approx(expected.intercept, abs=1e-8)
    seen = evidence["evidence_features"]
    np.testing.assert_array_equal(evidence["evidence_probability"], expected.probability[seen])
    np.testing.assert_array_equal(evidence["evidence_purged"], expected.purged[seen])
    # Squared hinge approaches its margin; rounding decides if a gap of 1e-16 is left.
    slack = 0.05 if params["loss"] == "squared_hinge" else 0.0
    np.testing.assert_allclose(
        evidence["evidence_updates"], expected.updates[seen], rtol=slack, atol=20 * slack
    )


# ---- compared with the estimator -----------------------------------------------------------------


def write_svmlight(file: Path, stream: Stream) -> str:
    lines = []
    for row, label in enumerate(stream.y):
        _, columns, values = sp.find(stream.csr[row])
        pairs = zip(columns.tolist(), values.tolist(), strict=True)
        lines.append(f"{label:g} " + " ".join(f"{j + 1}:{x!r}" for j, x in pairs))
    file.write_text("\n".join(lines) + "\n")
    return str(file)


@pytest.mark.parametrize("size", [8, None])
@pytest.mark.parametrize("class_weight", [None, {3: 0.3, 7: 2.5}])
def test_one_part_of_files_is_the_estimator(
    class_weight: Any, size: int | None, tmp_path: Path
) -> None:
    """The same weights, intercept and evidence as `fit`; a part has several files."""
    stream = problem(300, 80)
    stream.y = np.where(stream.y > 0, 7.0, 3.0)
    halves = [Stream(stream.X[s], stream.y[s], None, []) for s in (slice(0, 99), slice(99, None))]
    files = [write_svmlight(tmp_path / f"{i}.svm", half) for i, half in enumerate(halves)]
    clf = StabilizedClassifier(target_nnz=size, class_weight=class_weight, random_state=0)
    clf.fit(scan(files))
    job = ClusterJob(
        "stabilized", "classifier", clf.get_params(), WholeFiles([files], {}), ManyClasses([3, 7]),
        clf.n_features_in_, [300], clf._seed, 2,
    )  # fmt: skip
    sent = pickle.dumps(RobustStagesMode(job))  # as to workers
    assert len(sent) < 5000
    learned = run(pickle.loads(sent), 2, 2)
    (output,), (expected,) = learned.outputs, clf._fitted.learned()
    np.testing.assert_array_equal(output.keys, expected.keys)
    np.testing.assert_array_equal(output.weights, expected.weights)
    assert output.intercept == expected.intercept
    assert learned.evidence is not None
    assert clf.model_.evidence is not None
    for name, array in learned.evidence.tensors().items():
        np.testing.assert_array_equal(array, clf.model_.evidence.tensors()[name])


def test_parts_find_what_matters() -> None:
    stream = problem(600, 100)
    stream.weight = None
    learned = run(mode_of(InMemory(stream, [150, 300, 450]), 2, target_nnz=5, paths=8))
    assert learned.outputs[0].keys.tolist() == [0, 1, 2, 3, 4]
    signs = np.where(stream.X[:, :5] @ learned.outputs[0].weights > 0, 1, -1)
    assert np.mean(signs == stream.y) > 0.75  # some rows have none of the five


def test_the_labels_choose_the_number() -> None:
    """All parts measure on their own rows; permuted labels keep nothing."""
    stream = problem(600, 60)
    stream.weight = None
    for parts in ([], [200, 400]):
        learned = run(mode_of(InMemory(stream, parts), 2, target_nnz=None))
        assert set(range(5)) <= set(learned.outputs[0].keys.tolist())
        assert len(learned.outputs[0].keys) <= 30
    y = np.random.default_rng(0).permutation(stream.y)
    silent = run(mode_of(InMemory(Stream(stream.X, y, None, []), [200]), 2, target_nnz=None))
    share = np.mean(y > 0)
    assert len(silent.outputs[0].keys) == 0
    assert silent.outputs[0].intercept == pytest.approx(np.log(share / (1 - share)))


def test_any_keys_are_possible() -> None:
    """Increasing 64-bit keys give the same result as column numbers."""
    stream = problem()
    keys = np.sort(np.random.default_rng(0).integers(0, 2**62, stream.width))
    plain = facts_of(run(mode_of(InMemory(stream, [30]), 1)))
    for ranges in (1, 3):
        wide = facts_of(run(mode_of(InMemory(stream, [30], keys=keys), ranges, width=0)))
        assert wide[0] == keys[plain[0]].tolist()
        assert wide[1:3] == plain[1:3]
        assert wide[3]["evidence_purged"] == plain[3]["evidence_purged"]


def test_parts_without_rows_that_count() -> None:
    """Rows of weight 0 do not count; the other rows are learned as one part."""
    stream = problem()
    weight = np.ones(60)
    weight[:20] = 0.0
    stream.weight = weight
    mode = mode_of(InMemory(stream, [20]), paths=4)
    learned = facts_of(run(mode))
    expected = robust(
        stream.X, stream.y, lambda path, number, rows: _core.path_order(SEED, path, number, rows),
        paths=4, target=3, passes=3, stage_steps=60, refit_steps=80, sample_weight=weight,
        parts=[20],
    )  # fmt: skip
    np.testing.assert_allclose(learned[1], expected.weights[learned[0]], atol=1e-8)
    assert learned[2] == pytest.approx(expected.intercept, abs=1e-8)
    stream.weight = np.zeros(60)
    keys, weights, intercept, evidence = facts_of(run(mode_of(InMemory(stream, [20]))))
    assert (keys, weights, intercept) == ([], [], 0.0)
    assert evidence["evidence_features"] == []


def test_reports_of_stages() -> None:
    reports: list[StageReport] = []
    mode = mode_of(InMemory(problem(), [20, 45]), 2, target_nnz=5, passes=2)
    driven = run_stages(mode, InProcessExecutor(mode, None, 2), None, 1, watch=reports.append)
    sizes = [report.nonzeros for report in reports]
    assert sizes == [20, 10, 5, 5, 5]  # the last two are rounds for the weights
    assert all(report.rows > 0 and report.loss is not None for report in reports)
    assert all(a.bytes > b.bytes for a, b in itertools.pairwise(reports[:4]))
    assert [facts["nonzeros"] for facts in driven.history] == sizes


# ---- helpers -------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=60), st.data())
def test_kth_largest(numbers: list[int], data: st.DataObject) -> None:
    numbers += data.draw(st.lists(st.sampled_from(numbers), max_size=9))
    size = data.draw(st.integers(1, len(numbers) - 1))

    def counts(prefix: int, shift: int, bits: int) -> np.ndarray:
        near = [x >> shift for x in numbers if x >> shift >> bits == prefix]
        return np.bincount([x % 2**bits for x in near], minlength=2**bits)

    bound, tied = kth_largest(counts, size)
    above = sum(x > bound for x in numbers)
    if tied is None:
        assert above + numbers.count(bound) == size
    else:
        assert above + tied == size
        assert tied < numbers.count(bound)


@given(st.sets(st.integers(0, 2**64 - 1)))
def test_keys_are_packed_and_unpacked(keys: set[int]) -> None:
    array = np.array(sorted(keys), np.uint64)
    np.testing.assert_array_equal(unpack_keys(pack_keys(array)), array)


def test_narrow_integers() -> None:
    kinds = [
        narrow_integers(np.array([0, 2**bits - 1], np.uint64)).dtype for bits in (8, 9, 17, 33)
    ]
    assert [kind.itemsize for kind in kinds] == [1, 2, 4, 8]
    assert narrow_integers(np.zeros(0, np.int64)).tolist() == []
