"""Averaging over parts: equal to the oracle, and bit-identical for any hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from support.average_cases import SEED, WIDTH, Case, PieceFiles, cases, defaults, run
from support.distributed_rows import WholeFiles
from support.rule_cases import CASES
from thresher import _core, rules
from thresher.data.labels import ManyClasses
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.loop import ClusterRun, StageReport, run_stages
from thresher.distributed.engine.pieces import ClusterJob
from thresher.distributed.modes.average import AverageMode
from thresher.distributed.modes.average_pieces import make_outputs
from thresher.errors import DataError, DivergenceError, ParameterError
from thresher.training.seeds import stream_seed

RULES = sorted(rule for rule in CASES if "average" in rules.RULES[rule].cluster)


def dense(driven: ClusterRun, output: int = 0) -> np.ndarray:
    w = np.zeros(WIDTH)
    found = driven.learned.outputs[output]
    w[found.keys.astype(np.int64)] = found.weights
    return w


def states(driven: ClusterRun) -> list[bytes]:
    assert driven.learned.states is not None
    return driven.learned.states


def outputs_of(case: Case) -> list[int]:
    return case.classes if len(case.classes) > 2 else [1]


@pytest.mark.parametrize("rule", RULES)
@given(data=st.data())
def test_equal_to_the_oracle(rule: str, data: st.DataObject) -> None:
    case = data.draw(cases(rule, dtype="float64"))
    driven, reports = run(case, hosts=data.draw(st.integers(1, 3)))
    losses = []
    for output, target in enumerate(outputs_of(case)):
        w, b, loss = case.expected(target)
        scale = max(1.0, np.abs(w).max(initial=0.0))
        np.testing.assert_allclose(dense(driven, output), w, rtol=1e-9, atol=1e-9 * scale)
        np.testing.assert_allclose(
            driven.learned.outputs[output].intercept, b, rtol=1e-9, atol=1e-9 * scale
        )
        losses.append(loss)
    shown = [np.nan if report.loss is None else report.loss for report in reports]
    np.testing.assert_allclose(shown, np.mean(losses, axis=0)[: len(shown)], rtol=1e-8, atol=1e-9)
    assert reports[-1].nonzeros == sum(len(o.keys) for o in driven.learned.outputs)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=settings.default.max_examples // 3)  # each runs five times
@given(data=st.data())
def test_bits_do_not_depend_on_hosts_stops_and_losses(rule: str, data: st.DataObject) -> None:
    case = data.draw(cases(rule))
    want, reports = run(case)
    hosts = data.draw(st.integers(2, 3))
    assert states(run(case, hosts=hosts)[0]) == states(want)
    stop = data.draw(st.integers(1, len(reports)))
    every = data.draw(st.integers(1, 3))
    assert states(run(case, hosts, every, stop=stop)[0]) == states(want)

    lost, fresh = data.draw(st.integers(0, hosts - 1)), data.draw(st.booleans())

    troubled = []

    def forget(executor: InProcessExecutor, report: StageReport) -> None:
        if report.stage == stop and not troubled:
            troubled.append(report)
            executor.hosts[lost]._held.clear()
            if fresh:  # as in a new process
                executor.hosts[lost].shared.clear()

    driven, after = run(case, hosts, every, trouble=forget)
    assert states(driven) == states(want)
    remade = {piece for report in after for piece in report.remade}
    assert remade <= {("part", n) for n in range(lost, len(case.rows), hosts)} | {
        ("range", n) for n in range(lost, case.ranges, hosts)
    }
    if every <= stop < len(reports) and lost < len(case.rows):  # else there is no checkpoint
        assert ("part", lost) in remade


@pytest.mark.parametrize("rule", RULES)
@given(data=st.data())
def test_states_can_be_trained_further(rule: str, data: st.DataObject) -> None:
    """A learner with the state has the weights of the output, and can be trained further."""
    case = data.draw(cases(rule))
    driven, _ = run(case)
    average = bool(case.params.get("average", False))
    with case.job() as job:
        for output, state in zip(driven.learned.outputs, states(driven), strict=True):
            learner = make_outputs(job.plan(), 1)[0]
            learner.restore(state)
            keys, weights = learner.weights(average)
            assert keys.tolist() == output.keys.tolist()
            assert weights.tolist() == output.weights.tolist()
            assert learner.intercept(average) == output.intercept
            passes = driven.learned.facts["passes"]
            assert learner.steps == passes * sum(job.counts)
            block = next(b for p in range(job.rows.parts) for b in job.rows.source(p).blocks())
            batch = block.batch
            batch.set_targets(np.ones(block.rows))
            learner.learn(batch)
            assert learner.steps == passes * sum(job.counts) + block.rows


ESTIMATORS: list[tuple[Any, dict[str, Any]]] = [
    (thresher.TruncatedGradientClassifier, {"gravity": 0.01}),
    (thresher.TruncatedGradientClassifier, {"average": True, "l2": 0.01}),
    (thresher.ForwardBackwardClassifier, {}),
    (thresher.AveragedSGDClassifier, {"alpha": 0.01}),
    (thresher.FTRLClassifier, {}),
    (thresher.DualAveragingClassifier, {}),
    (thresher.MarginPerceptronClassifier, {"shrink": "all"}),
    (thresher.MirrorDescentClassifier, {}),
]


@pytest.mark.parametrize(("kind", "given_params"), ESTIMATORS)
@pytest.mark.parametrize("classes", [[-1, 1], [0, 1, 2]])
def test_one_part_and_round_is_close_to_fit(
    kind: Any, given_params: dict[str, Any], classes: list[int]
) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, WIDTH)) * (rng.random((80, WIDTH)) < 0.5)
    y = rng.choice(classes, 80).astype(float)
    model = kind(passes=3, shuffle="blocks", random_state=1, **given_params)
    seed = stream_seed(model.random_state, "")
    case = Case(model.rule, model.get_params(deep=False), [[(X, y)]], 2, classes)
    with case.job() as job:
        model.fit(job.rows.source(0))
        mode = AverageMode(ClusterJob(**{**vars(job), "seed": seed}))
        driven = run_stages(mode, InProcessExecutor(mode, None), None, 1)
    for output in range(len(outputs_of(case))):
        np.testing.assert_allclose(
            dense(driven, output), np.atleast_2d(model.coef_)[output], rtol=2e-4, atol=2e-4
        )


def two_parts(**params: Any) -> Case:
    rng = np.random.default_rng(7)
    rows = []
    for part in range(2):
        X = rng.normal(size=(20, WIDTH))
        X[:, part] = 0.0  # each part lacks a feature that the other has
        rows.append([(X, rng.choice([-1.0, 1.0], 20))])
    return Case("ftrl", defaults("ftrl", "classifier", **params), rows)


def test_a_feature_of_one_part_is_not_diluted() -> None:
    """Its numbers are those of the part that has it, to the last bit."""
    case = two_parts(passes=1, dtype="float64", l1=0.0, alpha=1.0, shuffle=False)
    both, _ = run(case)
    for part in range(2):
        alone, _ = run(Case(case.rule, case.params, [case.rows[part]]))
        assert dense(both)[1 - part] == dense(alone)[1 - part] != 0


def test_every_block_has_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """It depends on the numbers of part, piece and block; each file has its own blocks."""
    case, made, order = two_parts(passes=2, shuffle="each"), [], _core.path_order

    def spied(seed: int, place: int, passes: int, rows: int) -> Any:
        made.append((place, passes))
        return order(seed, place, passes, rows)

    case.rows = [[rows[0]] * 4 for rows in case.rows]
    monkeypatch.setattr(_core, "path_order", spied)
    with case.job() as job:  # two rounds of two files each
        assert isinstance(job.rows, PieceFiles)
        mode = AverageMode(replace(job, rows=WholeFiles(job.rows.names, {})), 2)
        run_stages(mode, InProcessExecutor(mode, None), None, 1)
    two = range(2)
    places = [p * 2**40 + i * 2**20 + b for i in two for p in two for b in two]
    assert made == [(place, passes) for passes in two for place in places]


def test_tol_stops_training() -> None:
    case = two_parts(passes=50, tol=10.0, patience=2)
    driven, reports = run(case)
    assert driven.learned.facts["passes"] == len(reports) == 3  # the first is better than none
    assert [report.rows for report in reports] == [40] * 3


def test_a_perceptron_without_updates_stops() -> None:
    X = np.eye(WIDTH)[:4]
    rows = [[(X, np.array([1.0, -1.0, 1.0, -1.0]))], [(X, np.array([1.0, -1.0, 1.0, -1.0]))]]
    params = defaults("margin-perceptron", "classifier", passes=50, l1=0.0, fit_intercept=False)
    driven, _ = run(Case("margin-perceptron", params, rows))
    assert driven.learned.facts["passes"] < 10
    assert (dense(driven)[:4] * [1, -1, 1, -1] > 1).all()


def test_the_first_part_with_rows_decides_alpha() -> None:
    case = two_parts(passes=1, alpha="auto")
    case.rows[0][0] = (np.zeros((0, WIDTH)), np.zeros(0))
    with case.job() as job:
        want = job.plan().rate_for(next(iter(job.rows.source(1).blocks())))
    assert run(case)[0].learned.facts["alpha"] == want


def test_weights_of_classes() -> None:
    """Weights of classes change the result; unknown classes are an error."""
    case = two_parts(passes=2, class_weight={1: 2.0}, shuffle=False)
    driven, reports = run(case)
    assert reports[0].loss is not None
    assert states(driven) != states(run(two_parts(passes=2, shuffle=False))[0])
    case.params["class_weight"] = {3: 1.0}
    with pytest.raises(ParameterError, match=r"class_weight.*3"):
        run(case)


def test_divergence_and_bad_rows_name_the_file() -> None:
    rng = np.random.default_rng(1)
    given_params = {"eta0": 1e6, "loss": "squared", "fit_intercept": False}
    params = defaults("truncated-gradient", "regressor", **given_params)
    good = (rng.normal(size=(30, WIDTH)), rng.normal(size=30))
    case = Case("truncated-gradient", params, [[(good[0] * 0, good[1])], [good]], classes=[])
    with pytest.raises(DivergenceError, match=r"1-0\.svm:\d+: the weights diverged.*lower eta0"):
        run(case)
    case = two_parts()
    case.rows[1][0][1][4] = 7.0
    with pytest.raises(DataError, match=r"1-0\.svm:5.*the label 7 is not among the classes"):
        run(case)


def test_no_rows_at_all() -> None:
    empty = (np.zeros((0, WIDTH)), np.zeros(0))
    params = defaults("ftrl", "classifier")
    with pytest.raises(DataError, match="no rows"):
        run(Case("ftrl", params, [[empty], [empty]]))


@pytest.mark.parametrize(
    ("rule", "given_params", "name"),
    [
        ("averaged-sgd", {"center": True}, "center"),
        ("truncated-gradient", {"certify": True}, "certify"),
        ("truncated-gradient", {"target_nnz": 3}, "target_nnz"),
        ("margin-perceptron", {"max_density": 0.5}, "max_density"),
        ("margin-perceptron", {"levels": (0.5,)}, "levels"),
        ("truncated-gradient", {"store": "nonzero"}, "nonzero"),
        ("ftrl", {"class_weight": "balanced"}, "class_weight"),
    ],
)
def test_unsupported_parameters_are_errors(
    rule: str, given_params: dict[str, Any], name: str
) -> None:
    params = defaults(rule, "classifier", **given_params)
    job = ClusterJob(
        rule, "classifier", params, PieceFiles([]), ManyClasses([0, 1]), WIDTH, [], SEED
    )
    with pytest.raises(ParameterError, match=name):
        AverageMode(job)


def test_rules_and_rounds_are_checked() -> None:
    labels = ManyClasses([0, 1])
    params = defaults("stabilized", "classifier")
    with pytest.raises(ParameterError, match="row by row"):
        AverageMode(
            ClusterJob("stabilized", "classifier", params, PieceFiles([]), labels, WIDTH, [])
        )
    params = defaults("ftrl", "classifier")
    job = ClusterJob("ftrl", "classifier", params, PieceFiles([]), labels, WIDTH, [])
    for rounds in (0, -1, 1.5, True):
        with pytest.raises(ParameterError, match="rounds"):
            AverageMode(job, rounds)  # type: ignore[arg-type]
