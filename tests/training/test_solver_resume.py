"""Rules that need all rows at once: interrupted and resumed fits are bit-identical."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from thresher import ModelFileError
from thresher.training import checkpoint as checkpoints
from thresher.training import solver_run
from thresher.training.checkpoint import TrainingCheckpoint
from thresher.training.observer import Interrupted, Observer
from thresher.training.run_options import RunOptions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class _Running:
    """Passes RunOptions to `_fit` directly."""

    def run(self, *rows: Any, **options: Any) -> Any:
        self._options = RunOptions.of(**options)
        return self.fit(*rows)  # type: ignore[attr-defined]

    def _fit(self, X: Any, y: Any, weights: Any, eval_set: Any, run: Any = None) -> Any:
        return super()._fit(X, y, weights, eval_set, self._options)  # type: ignore[misc]


class Stabilized(_Running, thresher.StabilizedClassifier):
    pass


class DescentClassifier(_Running, thresher.CoordinateDescentClassifier):
    pass


class DescentRegressor(_Running, thresher.CoordinateDescentRegressor):
    pass


class HardThreshold(_Running, thresher.HardThresholdRegressor):
    pass


class Stops(Observer):
    """Stops a run after some records; keeps all events."""

    def __init__(self, after: float = float("inf")) -> None:
        self.after, self.records = after, 0
        self.events: list[tuple[str, dict[str, Any]]] = []

    def tell(self, event: str, **facts: Any) -> None:
        self.events.append((event, facts))
        self.records += event == "record"

    def stops(self) -> bool:
        return self.records >= self.after

    def of(self, event: str) -> list[dict[str, Any]]:
        return [facts for name, facts in self.events if name == event]


PAPER = {"variant": "paper", "paths": 4, "passes": 3}
ROBUST = {"target_nnz": 5, "paths": 4, "rejection": 0.3, "passes": 2}
RULES: dict[str, tuple[type, dict[str, Any], int]] = {  # estimator, parameters, classes
    "robust": (Stabilized, ROBUST, 2),
    "robust, 4 classes": (Stabilized, ROBUST, 4),
    "robust, float64, 2 jobs": (Stabilized, {**ROBUST, "dtype": "float64", "n_jobs": 2}, 2),
    "paper": (Stabilized, PAPER, 2),
    "paper, 4 classes": (Stabilized, {**PAPER, "passes": 1}, 4),
    "paper, tol": (Stabilized, {**PAPER, "passes": 30, "tol": 0.5, "burst_growth": 1.0}, 2),
    "paper, weights": (Stabilized, {**PAPER, "gravity_rule": "weight-quantile"}, 2),
    "paper, long": (Stabilized, {**PAPER, "keep": 0.9, "min_updates": 20, "passes": 90}, 2),
    "descent": (DescentClassifier, {"l1": 0.01, "tol": 1e-6}, 2),
    "descent, 4 classes": (DescentClassifier, {"l1": 0.01, "class_weight": "balanced"}, 4),
    "descent, regressor": (DescentRegressor, {"l1": 0.02, "loss": "huber"}, 0),
    "hard threshold": (HardThreshold, {"n_nonzero": 5}, 0),
    "hard threshold, long step": (HardThreshold, {"n_nonzero": 5, "step": 0.01, "passes": 9}, 0),
}


def rows(classes: int, count: int = 90) -> tuple[Any, Any, Any, Any]:
    """Return rows, labels, weights, and an evaluation set."""
    rng = np.random.default_rng(7)
    X = sp.random(count, 40, 0.3, "csr", random_state=rng, data_rvs=rng.standard_normal)
    y = X @ rng.normal(size=40) + 0.3 * rng.normal(size=count)
    if classes:
        y = np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)
    weights = rng.integers(0, 4, count).astype(float)
    return X, y, weights, (X[:20], y[:20])


def made(rule: str, **others: Any) -> Any:
    kind, params, _ = RULES[rule]
    seed = {} if kind is HardThreshold else {"random_state": 3}
    return kind(**{**params, **seed, **others})


def history(fitted: Any) -> list[Any]:
    return [record._replace(seconds=0.0) for record in fitted.history_]


def assert_equal(a: Any, b: Any) -> None:
    assert a.coef_.tobytes() == b.coef_.tobytes()
    assert a.intercept_.tobytes() == b.intercept_.tobytes()
    assert history(a) == history(b)
    assert a.n_iter_ == b.n_iter_
    for name in ("violation_", "psi_", "step_"):
        assert np.array_equal(getattr(a, name, 0), getattr(b, name, 0))
    evidence = [getattr(e.model_, "evidence", None) for e in (a, b)]
    assert (evidence[0] is None) == (evidence[1] is None)
    if evidence[0] is not None:
        for field, value in vars(evidence[0]).items():
            assert np.array_equal(value, getattr(evidence[1], field)), field
        assert [x.state() for x in a._learners] == [x.state() for x in b._learners]


def points(records: int) -> list[int]:
    """Return the numbers of records to stop after: all, or the first, the last and some."""
    if records <= 24:
        return list(range(1, records + 1))
    return sorted({*range(1, 9), *range(10, records, records // 10), records - 1, records})


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_interrupted_anywhere_equals_uninterrupted(
    rule: str, weighted: bool, tmp_path: Path
) -> None:
    X, y, weights, held_out = rows(RULES[rule][2])
    data = (X, y, weights if weighted else None, held_out)
    whole = made(rule).run(*data)
    assert len(whole.history_) > 2
    interrupted = 0
    for k in points(len(whole.history_)):
        path = tmp_path / f"{k}.checkpoint"
        observer = Stops(k)
        try:
            fitted = made(rule).run(*data, observer=observer, checkpoint=path, every=np.inf)
        except Interrupted:
            interrupted += 1
            again = Stops()
            fitted = made(rule).run(*data, observer=again, checkpoint=path, resume=True)
            digests = [facts["digest"] for facts in observer.of("checkpoint")]
            assert [facts["digest"] for facts in again.of("resumed")] == digests
            assert observer.records + again.records == len(whole.history_)
        else:
            assert k == len(whole.history_)  # the fit was already complete
        assert_equal(fitted, whole)
    assert interrupted > 1


@pytest.mark.parametrize("rule", RULES)
def test_interrupted_several_times(rule: str, tmp_path: Path) -> None:
    X, y, weights, _ = rows(RULES[rule][2])
    whole = made(rule).run(X, y, weights)
    path = tmp_path / "checkpoint"
    for _ in range(len(whole.history_) + 1):
        try:
            fitted = made(rule).run(
                X, y, weights, observer=Stops(1 if len(whole.history_) < 40 else 30),
                checkpoint=path, resume=True, every=0,
            )  # fmt: skip
            break
        except Interrupted:
            pass
    assert_equal(fitted, whole)


class Killer:
    def __init__(self, record: int) -> None:
        self.left = record

    def __call__(self, _: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise MemoryError


def test_a_killed_run_continues_from_the_last_periodic_checkpoint(tmp_path: Path) -> None:
    for rule in ("robust, 4 classes", "paper", "descent", "hard threshold"):
        X, y, weights, _ = rows(RULES[rule][2])
        whole = made(rule).run(X, y, weights)
        path = tmp_path / rule.replace(" ", "-")
        killer = Killer(3)
        with pytest.raises(MemoryError):
            made(rule, callback=killer).run(X, y, weights, checkpoint=path, every=0)
        observer = Stops()
        assert_equal(
            made(rule).run(X, y, weights, checkpoint=path, resume=True, observer=observer), whole
        )
        assert observer.of("resumed")


def test_the_observer_receives_records() -> None:
    X, y, *_ = rows(0)
    observer = Stops()
    fitted = made("hard threshold").run(X, y, observer=observer)
    assert observer.of("record") == [record._asdict() for record in fitted.history_]
    assert [event for event, _ in observer.events] == ["record"] * len(fitted.history_)


@pytest.mark.parametrize("rule", ["robust", "paper", "descent", "hard threshold"])
def test_a_stop_without_a_checkpoint_is_a_keyboard_interrupt(rule: str) -> None:
    X, y, *_ = rows(RULES[rule][2])
    with pytest.raises(KeyboardInterrupt):
        made(rule).run(X, y, observer=Stops(1))


@pytest.mark.parametrize("rule", RULES)
def test_a_callback_ends_the_fit_and_the_weights_are_kept(rule: str, tmp_path: Path) -> None:
    X, y, *_ = rows(RULES[rule][2])
    seen: list[Any] = []

    def callback(record: Any) -> bool:
        seen.append(record)
        return len(seen) >= 2

    path = tmp_path / "checkpoint"
    fitted = made(rule, callback=callback).run(X, y, checkpoint=path, every=0)
    assert len(seen) == 2 <= len(fitted.history_) < len(made(rule).run(X, y).history_)
    # If an observer stops it too, the fit has ended, or each other class makes one stage.
    seen.clear()
    try:
        other = made(rule, callback=callback).run(X, y, checkpoint=path, observer=Stops(2))
    except Interrupted:
        other = made(rule, callback=callback).run(X, y, checkpoint=path, resume=True)
    assert_equal(other, fitted)


def interrupted(rule: str, path: Path, data: tuple[Any, ...], **others: Any) -> None:
    with pytest.raises(Interrupted):
        made(rule, **others).run(*data, observer=Stops(2), checkpoint=path)


@pytest.mark.parametrize("rule", ["robust", "paper", "descent", "hard threshold"])
def test_other_rows_are_refused(rule: str, tmp_path: Path) -> None:
    X, y, weights, held_out = rows(RULES[rule][2])
    path = tmp_path / "checkpoint"
    interrupted(rule, path, (X, y, weights, held_out))
    values, labels, heavier = X.copy(), y.copy(), weights.copy()
    values.data[0] += 1
    labels[0], labels[1] = labels[1] + (labels[0] == labels[1]), labels[0]
    heavier[0] += 1
    for other in (
        (values, y, weights, held_out),
        (X, labels % 2 if RULES[rule][2] else labels, weights, held_out),
        (X, y, heavier, held_out),
        (X, y, None, held_out),
        (X, y, weights),
        (X[:, :30], y, weights, (X[:20, :30], y[:20])),
    ):
        with pytest.raises(ModelFileError, match="the rows are not those of the run that wrote"):
            made(rule).run(*other, checkpoint=path, resume=True)
    with pytest.raises(ModelFileError, match="had 90 rows of 40 features; now 80 of 40"):
        made(rule).run(X[:80], y[:80], weights[:80], held_out, checkpoint=path, resume=True)


@pytest.mark.parametrize(
    ("rule", "name", "was", "now"),
    [
        ("robust", "keep", "0.5", 0.25),
        ("robust", "random_state", "3", 4),
        ("paper", "bursts", "5", 6),
        ("descent", "l1", "0.01", 0.02),
        ("descent", "passes", "1000", 2000),
        ("descent", "random_state", "3", 4),
        ("hard threshold", "n_nonzero", "5", 6),
    ],
)
def test_other_parameters_are_refused(
    rule: str, name: str, was: str, now: Any, tmp_path: Path
) -> None:
    X, y, *_ = rows(RULES[rule][2])
    path = tmp_path / "checkpoint"
    interrupted(rule, path, (X, y))
    with pytest.raises(ModelFileError, match=f"{name} was {was} in the run .* is {now} now"):
        made(rule, **{name: now}).run(X, y, checkpoint=path, resume=True)


def test_another_rule_is_refused(tmp_path: Path) -> None:
    X, y, *_ = rows(0)
    path = tmp_path / "checkpoint"
    interrupted("hard threshold", path, (X, y))
    with pytest.raises(ModelFileError, match=r"rule was 'hard-threshold' .* 'coordinate-descent'"):
        made("descent, regressor").run(X, y, checkpoint=path, resume=True)
    TrainingCheckpoint({"options": {}}, []).write(path)
    with pytest.raises(ModelFileError, match="learns row by row"):
        made("hard threshold").run(X, y, checkpoint=path, resume=True)


@pytest.mark.parametrize("rule", ["robust", "descent"])
def test_without_a_random_state_the_seed_is_that_of_the_checkpoint(
    rule: str, tmp_path: Path
) -> None:
    X, y, *_ = rows(2)
    path = tmp_path / "checkpoint"
    for given in (None, np.random.RandomState(5)):
        interrupted(rule, path, (X, y), random_state=given)
        seed = checkpoints.read(path).about["seed"]
        resumed = [
            made(rule, random_state=None).run(X, y, checkpoint=path, resume=True) for _ in range(2)
        ]
        assert_equal(*resumed)
    whole = made(rule, random_state=np.random.RandomState(5)).run(X, y)
    assert_equal(resumed[0], whole)
    assert seed == np.random.RandomState(5).randint(2**31)
    with pytest.raises(ModelFileError, match="random_state gives another seed"):
        made(rule, random_state=np.random.RandomState(6)).run(X, y, checkpoint=path, resume=True)


def test_the_number_of_threads_may_differ(tmp_path: Path) -> None:
    for rule in ("robust", "paper"):
        X, y, *_ = rows(2)
        path = tmp_path / rule
        interrupted(rule, path, (X, y), n_jobs=2)
        assert_equal(made(rule).run(X, y, checkpoint=path, resume=True), made(rule).run(X, y))


def test_dense_rows(tmp_path: Path) -> None:
    for rule in ("robust", "paper", "descent", "hard threshold"):
        X, y, *_ = rows(RULES[rule][2])
        path = tmp_path / rule.replace(" ", "-")
        X = X.toarray()
        interrupted(rule, path, (X, y))
        assert_equal(made(rule).run(X, y, checkpoint=path, resume=True), made(rule).run(X, y))


@pytest.mark.parametrize("damage", [lambda b: b[:-40], lambda b: b[:-9] + b"x" + b[-8:]])
def test_a_damaged_file_is_refused(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    for rule in ("robust", "descent", "hard threshold"):
        X, y, *_ = rows(RULES[rule][2])
        path = tmp_path / rule.replace(" ", "-")
        interrupted(rule, path, (X, y))
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(ModelFileError, match=r"cut short|damaged"):
            made(rule).run(X, y, checkpoint=path, resume=True)


def test_other_files_are_not_overwritten_by_checkpoints(tmp_path: Path) -> None:
    X, y, *_ = rows(0)
    path = tmp_path / "notes.txt"
    path.write_text("keep me")
    with pytest.raises(ModelFileError, match="is not a checkpoint"):
        made("hard threshold").run(X, y, checkpoint=path)
    assert path.read_text() == "keep me"


def test_without_a_checkpoint_a_resumed_run_starts_from_the_beginning(tmp_path: Path) -> None:
    X, y, *_ = rows(0)
    observer = Stops()
    path = tmp_path / "none"
    fitted = made("hard threshold").run(X, y, checkpoint=path, resume=True, observer=observer)
    assert not observer.of("resumed")
    assert_equal(fitted, made("hard threshold").run(X, y))


def test_a_full_disk_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> str:
        raise OSError(28, "No space left on device")

    X, y, *_ = rows(0)
    monkeypatch.setattr(solver_run.TrainingCheckpoint, "write", full)
    observer = Stops()
    path = tmp_path / "checkpoint"
    with pytest.warns(UserWarning, match="No space left"):
        fitted = made("hard threshold").run(X, y, checkpoint=path, every=0, observer=observer)
    assert_equal(fitted, made("hard threshold").run(X, y))


def test_a_resumed_run_adds_to_the_seconds(tmp_path: Path) -> None:
    X, y, *_ = rows(0)
    path = tmp_path / "checkpoint"
    interrupted("hard threshold", path, (X, y))
    saved = checkpoints.read(path)
    late = TrainingCheckpoint({**saved.about, "seconds": 1000.0}, saved.states)
    assert late.digest == saved.digest  # the digest does not include times
    late.write(path)
    resumed = made("hard threshold").run(X, y, checkpoint=path, resume=True)
    assert resumed.history_[2].seconds > 1000


@pytest.mark.parametrize(("rule", "refused"), [("robust", True), ("descent", False)])
def test_a_checkpoint_with_another_meaning_of_weights_is_refused(
    tmp_path: Path, rule: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, weights, _ = rows(2)
    path = str(tmp_path / "run")
    with monkeypatch.context() as earlier:
        earlier.setattr(solver_run, "bits_of", lambda *_, **__: {})
        with pytest.raises(Interrupted):
            made(rule).run(X, y, weights, checkpoint=path, observer=Stops(1))
    if refused:
        with pytest.raises(ModelFileError, match=r"in weights \(1, now 2\)"):
            made(rule).run(X, y, weights, checkpoint=path, resume=True)
    else:
        made(rule).run(X, y, weights, checkpoint=path, resume=True)
