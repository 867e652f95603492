"""The trainer: classes added late, warm starts, checkpoints and certificates."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from support.files import svmlight, vw
from thresher import Interrupted, Observer, ParameterError, scan
from thresher.data import matrix_source
from thresher.data.source import Source
from thresher.errors import ModelFileError


class StopsAt(Observer):
    """Stops a run at its n-th visit of rows, or when `when(trainer)` is true."""

    def __init__(self, visit: int = 0, when: Any = None) -> None:
        self.left, self.when, self.stop = visit, when, False

    def progress(self, trainer: Any) -> None:
        self.left -= 1
        self.stop = self.left == 0 or bool(self.when and self.when(trainer))

    def stops(self) -> bool:
        return self.stop


def rows(count: int = 400, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = sp.random(count, 20, 0.4, "csr", random_state=seed)
    return X, (X[:, 0].toarray().ravel() + 0.1 * rng.normal(size=count) > 0.1).astype(int)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_source, "_CHUNK", 400)  # about 50 rows


# ---- classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [3, -1])
def test_classes_that_first_occur_in_a_later_visit(small_chunks: None, late: int) -> None:
    X, y = rows()
    y = y + (X[:, 1].toarray().ravel() > 0.5)
    first = thresher.TruncatedGradientClassifier(dtype="float64").partial_fit(
        X[:50], y[:50], classes=[0, 1, 2]
    )
    whole = pickle.loads(pickle.dumps(first))
    y[-10:] = late
    first.partial_fit(X, y)
    for begin in range(0, 400, 40):
        whole.partial_fit(X[begin : begin + 40], y[begin : begin + 40])
    assert first.classes_.tolist() == sorted([0, 1, 2, late])
    np.testing.assert_array_equal(first.coef_, whole.coef_)
    assert first.predict(X).shape == (400,)


@pytest.mark.parametrize("kind", [np.int8, np.uint16, object])
def test_partial_fit_keeps_the_type_of_labels(kind: Any) -> None:
    X, y = rows()
    y = (y + (np.arange(400) % 2)).astype(str if kind is object else kind).astype(kind)
    clf = thresher.FTRLClassifier().partial_fit(X, y, classes=np.unique(y))
    before = clf.classes_.dtype
    assert clf.partial_fit(X, y).classes_.dtype == before == np.dtype(kind)


# ---- warm starts ---------------------------------------------------------------------------------


def test_a_warm_start_keeps_the_automatic_parameters_of_the_first_fit() -> None:
    clf = thresher.DualAveragingClassifier(warm_start=True, passes=2, random_state=0)
    clf.fit(*rows(400)).fit(*rows(100, seed=1))
    copy = pickle.loads(pickle.dumps(clf))
    more = rows(50, seed=2)
    np.testing.assert_array_equal(clf.partial_fit(*more).coef_, copy.partial_fit(*more).coef_)


def test_a_warm_start_keeps_names(tmp_path: Path) -> None:
    one, two = (vw(tmp_path / f"{name}.vw", rows=60) for name in ("one", "two"))
    two.write_text(one.read_text().replace("|", "|other"))
    clf = thresher.FTRLClassifier(warm_start=True, store="hashed", l1=0.0, passes=1)
    before = set(clf.fit(scan(one)).model_.names.values())
    after = clf.fit(scan(two)).model_
    assert before < set(after.names.values())
    assert len(after.names) == after.nnz


def test_a_warm_start_accepts_new_features_of_a_source(tmp_path: Path) -> None:
    X, y = rows()
    path = svmlight(tmp_path / "wide.svm", rows=50, classes=(0, 1))
    clf = thresher.FTRLClassifier(warm_start=True, store="hashed", passes=1).fit(X[:, :2], y)
    assert clf.fit(scan(path)).model_.indices.max() >= 2


# ---- checkpoints ---------------------------------------------------------------------------------


def test_certificates_of_a_resumed_run(small_chunks: None, tmp_path: Path) -> None:
    """The rows are separable, so the bound depends on their number in a pass."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    X = X[np.abs(X[:, 0]) > 0.7]
    y = (X[:, 0] > 0).astype(int)
    params = {"shuffle": "once", "passes": 40, "random_state": 0, "l1": 0.0}
    whole = thresher.MarginPerceptronClassifier(**params).fit(X, y)
    assert whole.model_.certificates[2].value is not None
    last = StopsAt(when=lambda trainer: trainer.number == whole.n_iter_ - 1)
    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        thresher.MarginPerceptronClassifier(**params).fit(X, y, checkpoint=path, observer=last)
    resumed = thresher.MarginPerceptronClassifier(**params)
    resumed.fit(X, y, checkpoint=path, resume=True)
    assert resumed.model_.certificates == whole.model_.certificates


def test_a_warm_start_is_resumed_only_from_the_same_state(
    small_chunks: None, tmp_path: Path
) -> None:
    X, y = rows()
    params = {"warm_start": True, "passes": 3, "random_state": 0}
    clf, path = thresher.FTRLClassifier(**params).fit(X, y), tmp_path / "run"
    with pytest.raises(Interrupted):
        clf.fit(X, y, checkpoint=path, observer=StopsAt(4))
    with pytest.raises(ModelFileError, match="passes before was 3"):
        thresher.FTRLClassifier(**params).fit(X, y, checkpoint=path, resume=True)
    assert clf.fit(X, y, checkpoint=path, resume=True).n_iter_ == 6


def test_a_callback_that_stops_the_run_at_a_checkpoint(small_chunks: None, tmp_path: Path) -> None:
    X, y = rows(512)
    params = {"passes": 4, "random_state": 0, "callback": lambda record: record.examples >= 512}
    whole = thresher.FTRLClassifier(**params).fit(X, y)
    path = tmp_path / "run"
    at_the_end = StopsAt(when=lambda trainer: trainer.examples == 512)
    with pytest.raises(Interrupted):
        thresher.FTRLClassifier(**params).fit(X, y, checkpoint=path, observer=at_the_end)
    resumed = thresher.FTRLClassifier(**params).fit(X, y, checkpoint=path, resume=True)
    assert resumed.history_[-1].examples == whole.history_[-1].examples == 512
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("of_file", [True, False])
def test_a_resumed_run_needs_the_same_validation_rows(
    small_chunks: None, tmp_path: Path, first: bool, of_file: bool
) -> None:
    X, y = rows()
    held_out: Any = (X[:50], y[:50])
    if of_file:
        held_out = scan(svmlight(tmp_path / "valid.svm", rows=50, classes=(0, 1)))
        y = np.where(y == 1, 1, 0)
        X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(400, 60))
    params, path = {"passes": 5, "random_state": 0}, tmp_path / "run"
    given = {"eval_set": held_out}
    with pytest.raises(Interrupted):
        thresher.FTRLClassifier(**params).fit(
            X, y, checkpoint=path, observer=StopsAt(12), **(given if first else {})
        )
    with pytest.raises(ModelFileError, match="validation was"):
        thresher.FTRLClassifier(**params).fit(
            X, y, checkpoint=path, resume=True, **({} if first else given)
        )


def test_fewer_passes_than_were_made_are_refused(small_chunks: None, tmp_path: Path) -> None:
    X, y = rows()
    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        thresher.FTRLClassifier(passes=8, random_state=0).fit(
            X, y, checkpoint=path, observer=StopsAt(when=lambda trainer: trainer.number == 5)
        )
    with pytest.raises(ModelFileError, match="it is in pass 6, and passes is 2 now"):
        thresher.FTRLClassifier(passes=2, random_state=0).fit(X, y, checkpoint=path, resume=True)
    longer = thresher.FTRLClassifier(passes=9, random_state=0)
    longer.fit(X, y, checkpoint=path, resume=True)
    whole = thresher.FTRLClassifier(passes=9, random_state=0).fit(X, y)
    np.testing.assert_array_equal(longer.coef_, whole.coef_)


def test_the_robust_rule_can_stop_within_its_refit(tmp_path: Path) -> None:
    """The refit makes no records; a run that stops there continues from the stage before it."""
    X, y = rows(20_000)
    params = {"passes": 2000, "random_state": 0, "paths": 4}

    class Late(Observer):
        calls = 0

        def stops(self) -> bool:
            self.calls += 1
            return self.calls > 4

    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        thresher.StabilizedClassifier(**params).fit(X, y, checkpoint=path, observer=Late())
    short = {**params, "passes": 30}
    with pytest.raises(ModelFileError, match="passes was 2000"):
        thresher.StabilizedClassifier(**short).fit(X, y, checkpoint=path, resume=True)


# ---- bad arguments of fit ------------------------------------------------------------------------


def test_bad_options_of_a_run_are_refused(tmp_path: Path) -> None:
    X, y = rows()
    kept = tmp_path / "kept.txt"
    kept.write_text("kept")
    for options, match in (
        ({"checkpoint": kept}, "exists and is not a checkpoint"),
        ({"checkpoint": tmp_path / "none" / "run"}, "there is no folder"),
        ({"checkpoint": 3}, "checkpoint must be a path"),
        ({"observer": "x"}, r"observer must be a thresher\.Observer"),
        ({"observer": Observer}, r"observer must be a thresher\.Observer"),
        ({"seed": 3}, "seed= is for training on sources"),
        ({"classes": [0, 1]}, "classes= is for classifiers on sources"),
    ):
        for estimator in (thresher.FTRLClassifier(), thresher.CoordinateDescentClassifier()):
            with pytest.raises((ValueError, OSError), match=match):
                estimator.fit(X, y, **options)
            assert not hasattr(estimator, "classes_")
    assert kept.read_text() == "kept"
    path = svmlight(tmp_path / "rows.svm", rows=50, classes=(0, 1))
    with pytest.raises(ParameterError, match="seed must be a whole number"):
        thresher.FTRLClassifier().fit(scan(path), seed="a")
    with pytest.raises(ParameterError, match="a regression has no classes"):
        thresher.FTRLRegressor().fit(scan(path), classes=[0, 1])
    with pytest.raises(ParameterError, match="needs rows in memory"):
        thresher.StabilizedClassifier().partial_fit(scan(path), classes=[0, 1])


def test_validation_rows_for_a_source_set_their_own_width(tmp_path: Path) -> None:
    """The width of an earlier fit does not limit them."""
    X, y = rows()
    path = svmlight(tmp_path / "rows.svm", rows=50, classes=(0, 1))
    clf = thresher.FTRLClassifier(passes=1).fit(X[:, :3], y)
    clf.fit(scan(path), eval_set=(X, y))
    assert clf.history_[-1].valid_loss is not None


# ---- partial_fit ---------------------------------------------------------------------------------


def test_a_failed_partial_fit_keeps_the_certificates() -> None:
    X, y = rows()
    clf = thresher.MarginPerceptronClassifier(passes=2, random_state=0).fit(X, y)
    before = clf.model_.certificates
    with pytest.raises(ValueError, match="not among the classes"):
        clf.partial_fit(X, y + 5)
    assert clf.model_.certificates == before


def test_partial_fit_with_the_mean_of_a_source_equals_fit(tmp_path: Path) -> None:
    path = svmlight(tmp_path / "rows.svm", rows=80, classes=(0, 1))
    keys, means = scan(path).mean()
    mean = np.zeros(int(keys.max()) + 1)
    mean[keys.astype(int)] = means
    given = thresher.AveragedSGDClassifier(center=True, dtype="float64", passes=1, shuffle=False)
    found = thresher.AveragedSGDClassifier(**given.get_params()).fit(scan(path))
    given.partial_fit(scan(path), classes=[0, 1], mean=mean)
    np.testing.assert_allclose(given.coef_, found.coef_)


def test_class_weights_are_refused_for_lists_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "sets.svm"
    path.write_text("1,2 1:1\n2 2:1\n 3:1\n" * 10)
    clf = thresher.FTRLClassifier(class_weight={1: 2.0})
    with pytest.raises(ParameterError, match="class_weight needs rows with one class each"):
        clf.partial_fit(scan(path, multilabel=True), classes=[1, 2])


def test_certificates_of_many_classes_read_the_rows_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{k} {k + 1}:1\n" for k in range(8)) * 5)
    readings, blocks = [0], Source.blocks

    def counted(self: Source, *args: Any, **options: Any) -> Any:
        readings[0] += 1
        return blocks(self, *args, **options)

    monkeypatch.setattr(Source, "blocks", counted)
    clf = thresher.MarginPerceptronClassifier(passes=2, shuffle=False).fit(scan(path))
    assert len(clf.model_.certificates) == 24
    assert readings[0] == 1 + 2 + 1  # for classes, passes, and certificates
