"""`thresher serve --learn`: errors and stops around checkpoints lose nothing that was answered."""

import errno
import os
import shutil
import threading

import pytest

from support.files import called
from support.learning import (
    begun_model,
    checked,
    learned,
    opened,
    requests_of,
    restored,
    same_bits,
    wait_for,
)
from support.servers import Server, write_model
from support.serving_rows import named_rows
from support.syncs import of_folders, watched
from thresher import FTRLClassifier
from thresher.errors import ModelFileError, ParameterError
from thresher.model.model import Model
from thresher.serving.learn_log import LearnLog
from thresher.serving.learn_request import learn
from thresher.serving.learning import LearnFolder, Learning
from thresher.serving.models import Models
from thresher.serving.refusal import Refusal


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return a model file with the state of its learner."""
    return begun_model(tmp_path_factory.mktemp("begun"))


def test_a_stop_between_a_checkpoint_and_its_log(begun, tmp_path):
    served = Models(begun).find(None)
    place = LearnFolder(str(tmp_path), str(begun), served.version, 300.0)
    learner, _ = place.restore()
    log, requests = place.opened_log(), [*requests_of(10)]
    for request in requests:
        learn(learner, request, served.model)
        log.append([request])
    learner.model_.save(tmp_path / "checkpoint-00000001.thresher", state=True)
    log.close()
    place.release()
    model, rows = restored(begun, tmp_path)
    assert rows == sum(len(one["rows"]) for one in requests)
    same_bits(model, learned(begun, requests))
    assert not (tmp_path / "log-00000000.jsonl").exists()
    assert restored(begun, tmp_path)[1] == rows


def test_a_checkpoint_whose_log_cannot_be_made_is_removed(begun, tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("no space")

    models, requests = Models(begun), [*requests_of(10)]
    learning = Learning.open(models, str(tmp_path), every=0.0)
    monkeypatch.setattr(LearnLog, "create", fail)
    for one in requests:
        learning.submit(checked(one, models.find(None).model)).result(60)
    learning.close()
    assert learning.checkpoints == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "log-00000000.jsonl"]
    monkeypatch.undo()
    model, rows = restored(begun, tmp_path)
    assert rows == learning.rows
    same_bits(model, learned(begun, requests))


def test_old_files_stay_until_the_new_ones_are_on_the_disk(begun, tmp_path, monkeypatch):
    folder = tmp_path / "learn"
    learning, submit = opened(begun, folder)
    (first,) = requests_of(1)
    watched(monkeypatch, of_folders(errno.EIO))
    submit(first).result(60)
    wait_for(lambda: learning.error)
    monkeypatch.undo()
    assert "the new log cannot be used: " in learning.error
    learning.close()
    for name in ("checkpoint-00000001.thresher", "log-00000001.jsonl"):
        os.unlink(folder / name)  # as after a power cut
    model, rows = restored(begun, folder)
    assert rows == len(first["rows"])
    same_bits(model, learned(begun, [first]))


@pytest.mark.parametrize("call", ["unlink", "listdir"])
def test_rows_after_a_checkpoint_are_kept_if_old_files_cannot_be_removed(
    begun, tmp_path, monkeypatch, call
):
    """The rows go to the new log, which the next start reads."""
    real, folder = getattr(os, call), tmp_path / "learn"

    def fail(path, *args, **more):
        if str(folder) in str(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return real(path, *args, **more)

    learning, submit = opened(begun, folder)
    monkeypatch.setattr(os, call, fail)
    first, second = requests_of(2)
    submit(first).result(60)
    wait_for(lambda: (folder / "log-00000001.jsonl").exists())
    learning._folder.every = 1e9
    submit(second).result(60)
    monkeypatch.undo()
    shutil.copytree(folder, tmp_path / "copy")  # as it is if the process is killed now
    model, rows = restored(begun, tmp_path / "copy")
    assert rows == learning.rows == len(first["rows"]) + len(second["rows"])
    same_bits(model, learned(begun, [first, second]))
    learning.close()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), MemoryError()])
def test_a_checkpoint_that_cannot_be_written_leaves_the_old_log(
    begun, tmp_path, monkeypatch, error
):
    learning, submit = opened(begun, tmp_path)
    requests = [*requests_of(4)]

    def fail(*args, **more):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Model, "save", fail)
        for one in requests[:3]:
            submit(one).result(60)
        learning.close()
    assert not [*tmp_path.glob("checkpoint-*")]
    model, rows = restored(begun, tmp_path)
    assert rows == learning.rows
    same_bits(model, learned(begun, requests[:3]))
    learning, submit = opened(begun, tmp_path)  # with a new log that was left
    submit(requests[3]).result(60)
    learning.close()
    assert learning.checkpoints == 1
    same_bits(restored(begun, tmp_path)[0], learned(begun, requests))


@pytest.mark.parametrize("rows", [0, 5])
def test_a_log_without_a_checkpoint_is_not_used(begun, tmp_path, rows):
    """It is left if the power was cut, or the checkpoint could not be written."""
    place = LearnFolder(str(tmp_path), str(begun), Models(begun).find(None).version, 300.0)
    place.restore()
    place._create_log(1, rows)
    place.release()
    assert restored(begun, tmp_path)[1] == 0


def test_names_that_may_not_be_on_the_disk_end_the_learning(begun, tmp_path, monkeypatch, caplog):
    learning, submit = opened(begun, tmp_path)
    first, second = requests_of(2)
    sync = os.fsync

    def fail(handle):
        if os.readlink(f"/proc/self/fd/{handle}") == str(tmp_path):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(handle)

    monkeypatch.setattr(os, "fsync", fail)
    submit(first).result(60)
    wait_for(lambda: learning.error)
    assert "cannot be used: [Errno 5]" in learning.error
    with pytest.raises(Refusal, match="no more rows are learned"):
        submit(second)
    learning.close()
    monkeypatch.undo()
    assert "Traceback" not in caplog.text
    assert restored(begun, tmp_path)[1] == len(first["rows"])


def test_requests_that_wait_are_refused_if_the_learner_fails(begun, tmp_path, monkeypatch):
    learning, submit = opened(begun, tmp_path)
    waits, goes_on = threading.Event(), threading.Event()

    def fail(*args, **more):
        waits.set()
        assert goes_on.wait(60)
        raise RuntimeError("broken")

    monkeypatch.setattr(learning, "_is_due", fail)
    requests = [*requests_of(3)]
    submit(requests[0]).result(60)
    assert waits.wait(60)
    waiting = submit(requests[1])
    goes_on.set()
    with pytest.raises(Refusal, match="the learner failed: broken; no more rows are learned"):
        waiting.result(60)
    with pytest.raises(Refusal, match="the learner failed"):
        submit(requests[2]).result(60)
    learning.close()
    monkeypatch.undo()
    assert restored(begun, tmp_path)[1] == len(requests[0]["rows"])


def test_a_new_log_that_cannot_be_opened_ends_the_learning(begun, tmp_path, monkeypatch, caplog):
    learning, submit = opened(begun, tmp_path)
    monkeypatch.setattr(LearnFolder, "opened_log", lambda _: os.stat("/no/such/folder"))
    first, second = requests_of(2)
    submit(first).result(60)
    wait_for(lambda: learning.error)
    assert "the new log cannot be used: [Errno 2]" in learning.error
    with pytest.raises(Refusal, match="cannot be used"):
        submit(second)
    learning.close()
    monkeypatch.undo()
    assert "Traceback" not in caplog.text
    assert restored(begun, tmp_path)[1] == len(first["rows"])


def test_a_start_that_fails_lets_the_folder_go(begun, tmp_path):
    rows, labels = named_rows(50)
    model = FTRLClassifier().partial_fit(rows, labels, classes=[0, 1]).model_
    path = write_model(model, tmp_path / "b.thresher")
    for _ in range(2):
        with pytest.raises(ParameterError, match="no state of a learner"):
            Learning.open(Models(path), str(tmp_path / "learn"))
    (tmp_path / "learn" / "log-00000000.jsonl").rename(tmp_path / "learn" / "log-00000007.jsonl")
    for _ in range(2):
        with pytest.raises(ModelFileError, match="a checkpoint is missing"):
            Learning.open(Models(path), str(tmp_path / "learn"))


def test_starts_that_cannot_learn_say_why(begun, tmp_path):
    rows, labels = named_rows(50)
    model = FTRLClassifier().partial_fit(rows, labels, classes=[0, 1]).model_
    path = write_model(model, tmp_path / "b.thresher")
    done = called("serve", path, "--learn", tmp_path / "l", code=2)
    assert "no state of a learner" in done.stderr
    assert "--keep-state" in done.stderr
    done = called("serve", path, begun, "--learn", tmp_path / "l", code=2)
    assert "only one model" in done.stderr
    with Server(begun, "--learn", tmp_path / "learn"):
        done = called("serve", begun, "--learn", tmp_path / "learn", code=2)
        assert "another process learns in this folder" in done.stderr
    other = write_model(model, tmp_path / "c.thresher", state=True)
    done = called("serve", other, "--learn", tmp_path / "learn", code=1)
    assert "began with another version" in done.stderr
