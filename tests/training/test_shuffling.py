"""Training on shuffled sources: sorted rows, exact resume, pipes, and checkpoints of before."""

import json

import numpy as np
import pytest

from support.files import svmlight
from thresher import FTRLClassifier, FTRLRegressor, Interrupted, Observer, scan
from thresher.data import buckets, shuffled
from thresher.errors import DataError
from thresher.training import checkpoint as checkpoints


class StopsAt(Observer):
    """Stops after a number of visits."""

    def __init__(self, visits):
        self.left = visits

    def progress(self, trainer):
        self.left -= 1

    def stops(self):
        return self.left <= 0


@pytest.fixture(params=["memory", "disk"])
def kept(request, monkeypatch):
    """Keep rows in memory, or in buckets on disk; a pass has several visits."""
    monkeypatch.setattr(buckets, "_ROWS", 100)
    if request.param == "disk":
        monkeypatch.setattr(shuffled, "LIMIT", 10_000)
        monkeypatch.setattr(shuffled, "BATCH", 8_000)
        monkeypatch.setattr(buckets, "FEWEST", 5)
    return request.param


def sorted_file(path, rows=1200, seed=0):
    lines = svmlight(path, rows=rows, seed=seed).read_text().splitlines()
    path.write_text("\n".join(sorted(lines, key=lambda line: line[0] == "-")) + "\n")
    return path


def test_a_sorted_file_gives_the_model_of_a_mixed_one(tmp_path, kept):
    file, other = sorted_file(tmp_path / "sorted.svm"), svmlight(tmp_path / "new.svm", 600, seed=1)
    truth = np.concatenate([block.labels for block in scan(other).blocks()])
    accuracy = {}
    for name, source, shuffle in (
        ("sorted", scan(file), False),
        ("shuffled", scan(file), "each"),
        ("mixed", scan(svmlight(tmp_path / "mixed.svm", 1200)), False),
    ):
        clf = FTRLClassifier(passes=1, shuffle=shuffle, random_state=0)
        if shuffle is False and name == "sorted":
            with pytest.warns(match="rows are ordered by their labels"):
                clf.fit(source)
        else:
            clf.fit(source)
        accuracy[name] = (clf.predict(scan(other)) == truth).mean()
    assert accuracy["shuffled"] == pytest.approx(accuracy["mixed"], abs=0.03)
    assert accuracy["sorted"] < accuracy["mixed"] - 0.1


@pytest.mark.parametrize("shuffle", ["each", "once", "replace"])
@pytest.mark.parametrize("visit", [1, 7, 14, 25])
def test_a_resumed_run_has_the_same_bits(tmp_path, kept, visit, shuffle):
    file, run = sorted_file(tmp_path / "rows.svm"), tmp_path / "run"
    clf = {"passes": 3, "shuffle": shuffle, "random_state": 5}
    whole = FTRLClassifier(**clf).fit(scan(file))
    with pytest.raises(Interrupted):
        FTRLClassifier(**clf).fit(scan(file), checkpoint=run, observer=StopsAt(visit))
    resumed = FTRLClassifier(**clf).fit(scan(file, threads=1), checkpoint=run, resume=True)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert [r.loss for r in resumed.history_] == [r.loss for r in whole.history_]


def test_a_run_without_a_seed_is_resumed_with_the_saved_one(tmp_path, kept):
    file, run = svmlight(tmp_path / "rows.svm", 600), tmp_path / "run"
    with pytest.raises(Interrupted):
        FTRLClassifier(passes=2).fit(scan(file), checkpoint=run, observer=StopsAt(3))
    saved = checkpoints.read(run).about["options"]["seed"]
    resumed = FTRLClassifier(passes=2).fit(scan(file), checkpoint=run, resume=True)
    whole = FTRLClassifier(passes=2).fit(scan(file), seed=saved)
    assert np.array_equal(resumed.coef_, whole.coef_)


def test_rows_that_changed_are_refused(tmp_path, kept):
    file, run = svmlight(tmp_path / "rows.svm", 600), tmp_path / "run"
    clf = FTRLClassifier(passes=2, random_state=0)
    whole = FTRLClassifier(passes=2, random_state=0).fit(scan(file))
    with pytest.raises(Interrupted):
        clf.fit(scan(file), checkpoint=run, observer=StopsAt(3))
    text = file.read_text()
    file.write_text(text)  # another time of change, the same rows
    resumed = FTRLClassifier(passes=2, random_state=0).fit(scan(file), checkpoint=run, resume=True)
    assert np.array_equal(resumed.coef_, whole.coef_)
    with pytest.raises(Interrupted):
        clf.fit(scan(file), checkpoint=run, observer=StopsAt(3))
    file.write_text(text.replace("1:", "2:", 1))
    with pytest.raises(DataError, match="are not those of the run"):
        FTRLClassifier(passes=2, random_state=0).fit(scan(file), checkpoint=run, resume=True)


def test_the_watch_of_labels_survives_a_checkpoint(tmp_path):
    """The alarm of the whole pass, from rows before and after the interruption."""
    run, clf = tmp_path / "run", {"passes": 1, "shuffle": False}
    batches = [(np.eye(40), np.full(40, label)) for label in (1,) * 20 + (0,) * 20]
    with pytest.raises(Interrupted):
        FTRLClassifier(**clf).fit(scan(lambda: batches), checkpoint=run, observer=StopsAt(25))
    watch = checkpoints.read(run).about["order"]["watch"]
    assert (watch["rows"], watch["runs"], watch["longest"]) == (1000, 2, [200, 800])
    with pytest.warns(match="rows 1 to 800 of the first 1,600 have the label 1"):
        FTRLClassifier(**clf).fit(scan(lambda: batches), checkpoint=run, resume=True)


def test_a_checkpoint_of_before_continues_within_blocks(tmp_path):
    """It says only that rows were shuffled, and has no watch."""
    batches = [(np.eye(40) * k, np.arange(40) % 2) for k in range(1, 11)]
    run, clf = tmp_path / "run", {"passes": 2, "random_state": 0}
    whole = FTRLClassifier(shuffle="blocks", **clf).fit(scan(lambda: batches))
    with pytest.raises(Interrupted):
        FTRLClassifier(shuffle="blocks", **clf).fit(
            scan(lambda: batches), checkpoint=run, observer=StopsAt(7)
        )
    saved = checkpoints.read(run)
    about = json.loads(json.dumps(dict(saved.about)))
    assert about["options"]["shuffle"] == "blocks"
    about["options"]["shuffle"] = True
    del about["order"]
    checkpoints.TrainingCheckpoint(about, saved.states, saved.best, saved.names).write(run)
    resumed = FTRLClassifier(**clf).fit(scan(lambda: batches), checkpoint=run, resume=True)
    assert np.array_equal(resumed.coef_, whole.coef_)


def test_iterators_that_are_read_once_have_a_buffer(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = np.sort(rng.integers(0, 2, 2000))
    notes = []

    class Notes(Observer):
        def tell(self, event, **facts):
            notes.append(facts.get("message", ""))

    def pieces():
        return iter([(X[i : i + 100], y[i : i + 100]) for i in range(0, 2000, 100)])

    clf = FTRLClassifier(passes=1, random_state=0)
    clf.fit(scan(pieces()), classes=[0, 1], observer=Notes())
    assert any("a buffer of 65,536 rows" in note for note in notes)
    with pytest.warns(match=r"raise shuffle_buffer= in scan above the length of such runs"):
        clf.fit(scan(pieces(), shuffle_buffer=50), classes=[0, 1])


@pytest.mark.parametrize("visit", [1, 3, 5])
def test_a_pipe_with_a_buffer_is_resumed_exactly(tmp_path, visit):
    rng = np.random.default_rng(0)
    X, run = rng.normal(size=(900, 5)), tmp_path / "run"
    y = X[:, 0] + 0.1 * rng.normal(size=900)

    def source():
        return scan(iter([(X[i : i + 70], y[i : i + 70]) for i in range(0, 900, 70)]),
                    shuffle_buffer=200)  # fmt: skip

    made = {"passes": 1, "random_state": 0}
    whole = FTRLRegressor(**made).fit(source())
    with pytest.raises(Interrupted):
        FTRLRegressor(**made).fit(source(), checkpoint=run, observer=StopsAt(visit))
    resumed = FTRLRegressor(**made).fit(source(), checkpoint=run, resume=True)
    assert np.array_equal(resumed.coef_, whole.coef_)
