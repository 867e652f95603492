"""Stages of the published stabilized rule in parts and ranges: the oracle, and the rule alone."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from distributed_rows import untimed
from oracles.stabilized import StabilizedResult, stabilized
from thresher import StabilizedClassifier, _core, settings
from thresher.data import as_batch
from thresher.data.source import Source, scan
from thresher.distributed.bench import _received
from thresher.distributed.crew import InProcess
from thresher.distributed.driving import ContinueLater, Driven, StageReport, drive
from thresher.distributed.folder import Folder
from thresher.distributed.paper_stages import PaperStages, _Range
from thresher.distributed.pieces import Arrays, Job, Outcome, Packet
from thresher.distributed.rows import WholeFiles
from thresher.errors import DataError, DivergenceError, ModelFileError, ParameterError
from thresher.training.labels import ManyClasses

SEED = 12345
DEFAULTS = StabilizedClassifier(variant="paper", eta0=0.3, paths=4, passes=3).get_params()


@dataclass(frozen=True)
class Matrices:
    """Rows in memory: of each part a matrix, labels and weights, in blocks of a few rows."""

    content: Sequence[tuple[sp.csr_matrix, np.ndarray, np.ndarray | None]]

    @property
    def parts(self) -> int:
        return len(self.content)

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        X, y, weights = self.content[part]
        cuts = [slice(at, at + 7) for at in range(0, max(len(y), 1), 7)]
        return scan(
            lambda: ((X[c], y[c]) if weights is None else (X[c], y[c], weights[c]) for c in cuts)
        )


def drawn(seed: int, rows: Sequence[int], width: int, weighted: bool, density: float) -> Matrices:
    """Draw parts: some features rare, some rows empty, some zeros stored."""
    rng = np.random.default_rng(seed)
    share, content = density * rng.random(width) * 1.5, []
    for n in rows:
        X = sp.csr_matrix(rng.normal(size=(n, width)).astype(np.float32).astype(np.float64))
        X.data[rng.random((n, width)).ravel() >= np.tile(share, n)] = 0.0
        dropped = X.copy()
        dropped.data[::11] = 1.0  # so that a few zeros stay
        X = X.multiply(dropped.toarray() != 0).tocsr()
        weights = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weighted else None
        content.append((X, rng.choice([-1.0, 1.0], n), weights))
    return Matrices(content)


def job_of(rows: Matrices, ranges: int = 1, **params: Any) -> Job:
    return Job(
        rule="stabilized",
        task="classifier",
        params=DEFAULTS | params,
        rows=rows,
        labels=ManyClasses([-1, 1]),
        width=rows.content[0][0].shape[1],
        counts=[len(y) for _, y, _ in rows.content],
        seed=SEED,
        ranges=ranges,
    )


def driven(
    job: Job, benches: int = 1, folder: str | None = None, every: int = 1, **options: Any
) -> Driven:
    mode = PaperStages(job)
    keep = None if folder is None else Folder(folder)
    crew = InProcess(mode, keep, benches, options.pop("threads", 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return drive(mode, crew, keep, every, **options)


def alone(job: Job) -> tuple[_core.StabilizedLearner, list[_core.Stage]]:
    """Learn all rows, as one part, by the rule on one machine."""
    X = sp.vstack([X for X, _, _ in job.rows.content], format="csr")  # type: ignore[attr-defined]
    y = np.concatenate([y for _, y, _ in job.rows.content])  # type: ignore[attr-defined]
    weights = [w for *_, w in job.rows.content]  # type: ignore[attr-defined]
    numbers, words = settings.stabilized_parameters(job.params, SEED, len(y))
    learner = _core.make_stabilized("paper", job.params["dtype"], job.width, numbers, words)
    batch = as_batch(X)
    batch.set_targets(y, None if weights[0] is None else np.concatenate(weights))
    told: list[_core.Stage] = []
    learner.learn(
        batch, job.params["passes"], job.params["tol"] or 0.0, 1, lambda s: not told.append(s)
    )
    return learner, told


def oracle(job: Job) -> StabilizedResult:
    """Let each path walk through the rows of its part."""
    content = job.rows.content  # type: ignore[attr-defined]
    p, M = job.params, job.params["paths"]
    starts = np.cumsum([0, *job.counts])
    orders = []
    for m in range(M):
        part = m * len(content) // M
        orders.append(starts[part] + _core.path_order(SEED, m, 0, job.counts[part]))
    weights = [w for *_, w in content]
    return stabilized(
        np.vstack([X.toarray() for X, _, _ in content]),
        np.concatenate([y for _, y, _ in content]),
        orders,
        loss=p["loss"], eta=p["eta0"], beta0=0.7 if p["rejection"] == "auto" else p["rejection"],
        gamma=p["annealing"], pi0=p["keep"], K=p["burst"], n_K=p["bursts"], passes=p["passes"],
        delta_K=0 if p["min_updates"] == "auto" else p["min_updates"], alpha=p["burst_growth"],
        count=p["count"], gravity_rule=p["gravity_rule"],
        sample_weight=None if weights[0] is None else np.concatenate(weights),
        dtype=np.dtype(p["dtype"]), rows=max(job.counts),
    )  # fmt: skip


def assert_same(one: Driven, two: Driven) -> None:
    """Bit for bit."""
    assert one.stages == two.stages
    assert one.learned.facts == two.learned.facts
    assert untimed(one.shown) == untimed(two.shown)
    for a, b in zip(one.learned.outputs, two.learned.outputs, strict=True):
        assert a.keys.tobytes() == b.keys.tobytes()
        assert a.weights.tobytes() == b.weights.tobytes()
    assert one.learned.evidence is not None
    assert two.learned.evidence is not None
    ours, theirs = one.learned.evidence.tensors(), two.learned.evidence.tensors()
    assert {k: v.tobytes() for k, v in ours.items()} == {k: v.tobytes() for k, v in theirs.items()}


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "loss": draw(st.sampled_from(["logistic", "hinge", "squared_hinge"])),
        "eta0": draw(st.sampled_from([0.0503, 0.31])),
        "rejection": draw(st.sampled_from([0.0, 0.3, 0.7, 0.95])),
        "annealing": draw(st.sampled_from([-5.0, -1.0, 0.0, 3.0])),
        "keep": draw(st.sampled_from([0.0, 0.5, 0.6, 0.9])),
        "burst": draw(st.sampled_from([1, 2, 5])),
        "bursts": draw(st.sampled_from([1, 3, 5])),
        "min_updates": draw(st.sampled_from([0, 0, 4])),
        "burst_growth": draw(st.sampled_from([None, None, float(np.exp(-1)), 0.5])),
        "count": draw(st.sampled_from(["x", "gradient"])),
        "gravity_rule": draw(st.sampled_from(["update-quantile"] * 3 + ["weight-quantile"])),
        "paths": draw(st.integers(3, 6)),
        "passes": draw(st.integers(1, 4)),
    }


def some_rows(draw: Any, parts: int) -> Matrices:
    return drawn(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.lists(st.integers(1, 30), min_size=parts, max_size=parts)),
        draw(st.integers(1, 14)),
        draw(st.booleans()),
        draw(st.sampled_from([0.1, 0.3, 0.8])),
    )


# ---- what is learned ---------------------------------------------------------------------------


@given(
    data=st.data(),
    params=parameters(),
    dtype=st.sampled_from(["float32", "float64"]),
    tol=st.sampled_from([None, None, 0.3, 2.0]),
    ranges=st.integers(1, 3),
    threads=st.integers(1, 3),
)
def test_one_part_is_the_rule_alone(
    data: st.DataObject,
    params: dict[str, Any],
    dtype: str,
    tol: float | None,
    ranges: int,
    threads: int,
) -> None:
    """To the last bit: weights, evidence, gravity, rates and bursts of every stage, losses."""
    job = job_of(some_rows(data.draw, 1), ranges, **params, dtype=dtype, tol=tol)
    try:
        learner, stages = alone(job)
    except DivergenceError:
        assume(False)
    run = driven(job, threads=threads)
    (output,) = run.learned.outputs
    keys, weights = learner.weights()
    assert (output.keys.tobytes(), output.weights.tobytes()) == (keys.tobytes(), weights.tobytes())
    assert output.intercept == 0
    evidence = run.learned.evidence
    assert evidence is not None
    found = (evidence.features, evidence.probability, evidence.updates, evidence.purged)
    for ours, theirs in zip(found, learner.findings(), strict=True):
        assert ours.tobytes() == theirs.tobytes()
    loss = weight = 0.0
    for ours, theirs in zip(run.shown, stages, strict=False):  # of which 64 and some are told
        assert ours["stage"] == theirs.number
        assert (ours["gravity"], ours["beta"], ours["d"], ours["burst"], ours["nonzeros"]) == (
            theirs.gravity, theirs.beta, theirs.d, theirs.burst, theirs.stable,
        )  # fmt: skip
        if theirs.weight_sum > weight:
            mean = (theirs.loss_sum - loss) / (theirs.weight_sum - weight)
            assert ours["loss"] == mean
        loss, weight = theirs.loss_sum, theirs.weight_sum
    if run.stages < 64:
        assert len(run.shown) == len(stages) == run.stages == run.learned.facts["stages"]
        assert run.learned.facts["rows"] == stages[-1].rows
        assert run.learned.facts["gravity"] == stages[-1].gravity


@given(
    data=st.data(),
    params=parameters(),
    parts=st.integers(1, 3),
    ranges=st.integers(1, 3),
    benches=st.integers(1, 3),
)
def test_parts_are_as_in_the_oracle(
    data: st.DataObject, params: dict[str, Any], parts: int, ranges: int, benches: int
) -> None:
    """R-13, where each path has the rows of its part alone."""
    job = job_of(some_rows(data.draw, parts), ranges, **params, dtype="float64")
    expected = oracle(job)
    assume(np.abs(expected.paths).max() < 100)  # where rates explode, rounding errors do too
    run = driven(job, benches)
    (output,) = run.learned.outputs
    w = np.zeros(job.width)
    w[output.keys.astype(int)] = output.weights
    np.testing.assert_allclose(w, expected.weights, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(w != 0, expected.weights != 0)
    X = np.vstack([X.toarray() for X, _, _ in job.rows.content])  # type: ignore[attr-defined]
    seen = np.flatnonzero(np.any(X != 0, axis=0))
    evidence = run.learned.evidence
    assert evidence is not None
    np.testing.assert_array_equal(evidence.features, seen)
    np.testing.assert_array_equal(evidence.probability, expected.probability[seen])
    np.testing.assert_array_equal(evidence.updates, expected.updates[seen])
    np.testing.assert_array_equal(evidence.purged, expected.purged[seen])
    np.testing.assert_array_equal(evidence.documents, np.count_nonzero(X, axis=0)[seen])
    assert run.stages == len(expected.trace)
    for shown in run.shown:
        stage = expected.trace[shown["stage"] - 1]
        assert shown["burst"] == stage.K
        assert shown["gravity"] == pytest.approx(stage.gravity, rel=1e-9, abs=1e-12)
        assert shown["beta"] == pytest.approx(stage.beta, rel=1e-12, abs=1e-15)
        assert shown["d"] == pytest.approx(stage.d)


def test_the_estimator_gives_the_same() -> None:
    """Evidence, documents included, is that of `StabilizedClassifier.fit`."""
    rows = drawn(5, [60], 40, False, 0.2)
    X, y, _ = rows.content[0]
    params = {"variant": "paper", "paths": 5, "passes": 6, "class_weight": {-1: 2.0, 1: 0.5}}
    model = StabilizedClassifier(**params, random_state=3).fit(X, y)
    job = replace(job_of(rows, 3, **model.get_params()), seed=model._seed)
    run = driven(job)
    assert model.model_.evidence is not None
    assert run.learned.evidence is not None
    ours, theirs = run.learned.evidence.tensors(), model.model_.evidence.tensors()
    for name in theirs:
        np.testing.assert_array_equal(ours[name], theirs[name], name)
    np.testing.assert_array_equal(run.learned.outputs[0].weights, model.model_.weights)


def test_each_of_several_classes() -> None:
    """An output is one against the others, with the orders that the estimator gives it."""
    ((X, _, _),) = drawn(6, [50], 20, False, 0.3).content
    y = np.arange(50) % 3
    model = StabilizedClassifier(variant="paper", paths=3, passes=2, random_state=1).fit(X, y)
    job = job_of(Matrices([(X, y, None)]), 2, **model.get_params())
    job = replace(job, labels=ManyClasses([0, 1, 2]), seed=model._seed)
    for output, learner in enumerate(model._learners):
        run = driven(replace(job, output=output))
        np.testing.assert_array_equal(run.learned.outputs[0].weights, learner.weights()[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("few", [False, True])
def test_gravity_is_found(
    monkeypatch: pytest.MonkeyPatch, dtype: str, same: bool, few: bool
) -> None:
    """Mostly with no question at all; where many ratios are alike or too many near, by bits."""
    asked: list[str] = []
    ask = InProcess.ask_parts

    def counted(self: InProcess, question: dict[str, Any]) -> list[Any]:
        asked.append(question["ask"])
        return ask(self, question)

    monkeypatch.setattr(InProcess, "ask_parts", counted)
    if few:
        monkeypatch.setattr("thresher.distributed.paper_lead._FEW", 5)
        monkeypatch.setattr("thresher.distributed.paper_stages._VALUES", 50)
    rows = drawn(7, [400], 300, False, 0.2)
    if same:
        rows.content[0][0].data[:] = 1.0
    job = job_of(rows, passes=10, keep=0.0, dtype=dtype, eta0=0.05, annealing=0.0)
    run = driven(job)
    learner, stages = alone(job)
    assert run.learned.outputs[0].weights.tobytes() == learner.weights()[1].tobytes()
    assert [s["gravity"] for s in run.shown[: len(stages)]] == [s.gravity for s in stages]
    assert run.learned.facts["gravity"] > 0
    assert asked.count("histogram") >= (run.stages if few else 1)
    assert few or same or len(asked) < run.stages / 4


# ---- any workers, and any that are lost ----------------------------------------------------------


def read_only(packets: Sequence[Packet]) -> list[Arrays]:
    """Give what was received as a cluster gives it: a copy that cannot be written."""
    received = pickle.loads(pickle.dumps(_received(packets)))
    for arrays in received:
        for array in arrays.values():
            array.flags.writeable = False
    return list(received)


@given(data=st.data(), params=parameters(), parts=st.integers(1, 3), ranges=st.integers(1, 3))
def test_workers_do_not_matter(
    data: st.DataObject, params: dict[str, Any], parts: int, ranges: int
) -> None:
    job = job_of(some_rows(data.draw, parts), ranges, **params)
    try:
        expected = driven(job)
    except DivergenceError:
        assume(False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.distributed.bench._received", read_only)
        for benches, threads in ((2, 2), (3, 1)):
            assert_same(driven(job, benches, threads=threads), expected)


@given(
    data=st.data(),
    params=parameters(),
    dtype=st.sampled_from(["float32", "float64"]),
    tol=st.sampled_from([None, 0.3]),
    parts=st.integers(1, 3),
    every=st.integers(1, 3),
)
def test_stopping_and_going_on(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    params: dict[str, Any],
    dtype: str,
    tol: float | None,
    parts: int,
    every: int,
) -> None:
    """After any stage, also when nothing but the result was left, on other workers."""
    few = {"bursts": 3, "passes": min(params["passes"], 2)}  # stages: all are written
    job = job_of(some_rows(data.draw, parts), 2, **params | few, dtype=dtype, tol=tol)
    try:
        expected = driven(job, 2)
    except DivergenceError:
        assume(False)
    path = str(tmp_path_factory.mktemp("run"))
    stop = data.draw(st.integers(1, expected.stages))
    with pytest.raises(ContinueLater):
        driven(job, 2, path, every, watch=lambda report: report.stage == stop)
    committed = Folder(path).committed()
    assert committed is not None
    assert committed.stage == stop
    assert_same(driven(job, 3, path, every, committed=committed), expected)


@given(
    data=st.data(), params=parameters(), dtype=st.sampled_from(["float32", "float64"]),
    every=st.integers(1, 3), tol=st.sampled_from([None, 0.3]),
)  # fmt: skip
def test_a_worker_that_is_lost(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    params: dict[str, Any],
    dtype: str,
    every: int,
    tol: float | None,
) -> None:
    """Only its own pieces are made again, to the same bits."""
    few = {"bursts": 3, "passes": min(params["passes"], 2)}
    job = job_of(some_rows(data.draw, 3), 3, **params | few, dtype=dtype, tol=tol)
    try:
        expected = driven(job)
    except DivergenceError:
        assume(False)
    mode, folder = PaperStages(job), Folder(str(tmp_path_factory.mktemp("run")))
    crew = InProcess(mode, folder, 2)
    lost = data.draw(st.integers(1, expected.stages))
    remade: list[Any] = []
    losses = 0

    def watch(report: StageReport) -> None:
        nonlocal losses
        remade.extend(report.remade)
        if report.stage == lost and not losses:
            losses += 1
            crew.benches[1]._held.clear()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = drive(mode, crew, folder, every, watch=watch)
    assert_same(run, expected)
    assert losses == 1
    if every <= lost < expected.stages:  # else all began again, or only the result was left
        assert sorted(remade) == [("part", 1), ("range", 1)]


# ---- what is sent and kept -----------------------------------------------------------------------


def test_messages_and_states_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below 25 bytes for each feature that a stage touches; states have no rows in them."""
    rng = np.random.default_rng(0)
    width, n, nnz = 20_000, 500, 40
    starts, content = np.arange(0, n * nnz + 1, nnz), []
    for _ in range(2):
        keys = np.sort((width * rng.random((n, nnz)) ** 2).astype(np.int32)).ravel()
        X = sp.csr_matrix((np.ones(n * nnz), keys, starts), shape=(n, width))
        content.append((X, rng.choice([-1.0, 1.0], n), None))
    touched: list[set[int]] = []
    step = _Range.step

    def counted(self: _Range, message: dict[str, Any], received: Sequence[Arrays]) -> Outcome:
        if message["do"] == "stage":
            touched.append({self.first + int(j) for arrays in received for j in arrays["at"]})
        return step(self, message, received)

    monkeypatch.setattr(_Range, "step", counted)
    for parts in (1, 2):
        job = job_of(Matrices(content[:parts]), 2, paths=16, passes=1, burst=20)
        reports: list[StageReport] = []
        touched.clear()
        folder = tmp_path / str(parts)
        driven(job, parts, str(folder), 1, watch=reports.append)
        of_stage = [len(one | two) for one, two in zip(touched[::2], touched[1::2], strict=True)]
        assert len(reports) == len(of_stage) > 3
        for report, count in zip(reports[1:], of_stage[1:], strict=True):
            assert 7 * count <= report.bytes < 25 * count
        states = list(folder.glob("stage-*/part-*"))
        assert len(states) == parts
        assert all(state.stat().st_size < 16 // parts * width * 4 + 50_000 for state in states)


# ---- what is refused -----------------------------------------------------------------------------


def test_what_cannot_be_learned() -> None:
    rows = drawn(1, [20, 10], 9, False, 0.5)
    with pytest.raises(ParameterError, match="paths=1 are too few for 2 parts"):
        PaperStages(job_of(rows, paths=1))
    with pytest.raises(ParameterError, match="variant"):
        PaperStages(job_of(rows, variant="robust"))
    for width in (0, 2**31 + 1):
        with pytest.raises(ParameterError, match="bits"):
            PaperStages(replace(job_of(rows), width=width))
    with pytest.raises(ParameterError, match=r"burst=100000000.*2\^32"):
        PaperStages(job_of(rows, burst=10**8, bursts=50))
    with pytest.raises(DataError, match="part 1 of 2 has no rows"):
        PaperStages(job_of(drawn(1, [20, 0], 9, False, 0.5)))
    with pytest.raises(DataError, match="part 1 has 10 rows, and had 11 when"):
        driven(replace(job_of(rows), counts=[20, 11]))
    with pytest.raises(DataError, match=r"feature number \d is outside 0\.\.4"):
        driven(replace(job_of(rows), width=5))
    with pytest.raises(ParameterError, match=r"class_weight.*\['7'\]"):
        driven(job_of(rows, class_weight={7: 1.0}))
    bad = drawn(1, [20, 10], 9, False, 0.9)
    bad.content[1][0].data[-1] = 1e30
    with pytest.raises(DataError, match=r"iterator:10: the value of feature \d is 1e\+30"):
        driven(job_of(bad))
    with pytest.raises(DivergenceError, match=r"part [01]: the weights diverged at row"):
        driven(job_of(rows, loss="squared_hinge", eta0=1e20, dtype="float32", passes=50))


def test_a_mode_is_small_and_writes_seldom() -> None:
    job = replace(job_of(drawn(1, [20], 9, False, 0.5)), rows=WholeFiles([["a"], ["b"]], {}))
    mode = PaperStages(replace(job, counts=[10, 10]))
    assert len(pickle.dumps(mode)) < 5000
    assert mode.every == 50
    long = PaperStages(job_of(drawn(1, [20], 9, False, 0.5), burst=10_000))
    assert long.every == 2**20 // (10_000 * 5 * 4)
    assert [list(mode.paths_of(part)) for part in (0, 1)] == [[0, 1], [2, 3]]


def test_damaged_states_are_refused() -> None:
    job = job_of(drawn(1, [20], 9, False, 0.5))
    mode = PaperStages(job)
    part, piece = mode.part(0, 1, {}), mode.range(0, {})
    for state in ({}, {"paths": np.zeros(5, np.uint8)}, {"paths": part.state()["paths"][:-3]}):
        with pytest.raises(ModelFileError, match="checkpoint of part 0"):
            mode.part(0, 1, {}).restore(state)
    wider = PaperStages(replace(job, width=11)).part(0, 1, {})
    wider.step(_first_message(), [])
    with pytest.raises(ModelFileError, match="damaged"):
        part.restore(wider.state())
    with pytest.raises(ModelFileError, match="checkpoint of range 0"):
        piece.restore({"evidence": np.zeros(3, np.uint8)})
    with pytest.raises(ModelFileError, match="checkpoint of the driver"):
        mode.lead().restore({"stage": 3})


def _first_message() -> dict[str, Any]:
    return {
        "do": "stage", "stage": 0, "burst": 2, "gravity": 0.0, "beta": 0.7, "low": 0.0, "high": 0.0,
    }  # fmt: skip


def test_a_warning_where_gravity_is_0() -> None:
    """A-36, once, and not again when a run goes on."""
    job = job_of(drawn(3, [60], 12, False, 0.6), loss="hinge", rejection=0.05, eta0=1.0, keep=0.0)
    mode = PaperStages(job)
    with pytest.warns(UserWarning, match="gravity is 0 at stage") as caught:
        drive(mode, InProcess(mode, None), None, 1)
    assert len(caught) == 1
