"""`thresher serve --learn`: what was answered is never lost, and has the same bits."""

import errno
import http.client
import json
import os
import shutil
import signal
import sys
import threading
import time

import numpy as np
import pytest

from support.files import called
from support.servers import Server, write_model
from support.serving_rows import named_rows
from thresher import FTRLClassifier, FTRLRegressor, OnePassClassifier, load
from thresher.data.scan import scan
from thresher.errors import ModelFileError, ParameterError
from thresher.model.model import Model
from thresher.serving.learn_log import LearnLog, read_log
from thresher.serving.learn_request import learn, request_of
from thresher.serving.learning import LearnFolder, Learning
from thresher.serving.models import Models
from thresher.serving.question import Question
from thresher.serving.refusal import Refusal

START = 100


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return a model file with the state of its learner."""
    rows, labels = named_rows(START, seed=20)
    learner = OnePassClassifier()
    for row, label in zip(rows, labels, strict=True):
        learner.learn_one(row, label, classes=[0, 1] if learner._is_new() else None)
    return write_model(learner.model_, tmp_path_factory.mktemp("begun") / "a.thresher", state=True)


def learned(path, requests):
    """Return the model after requests, learned without a server."""
    learner = load(path).estimator()
    for request in requests:
        weights = request.get("weights") or [1.0] * len(request["rows"])
        for row, label, weight in zip(request["rows"], request["labels"], weights, strict=True):
            learner.learn_one(row, label, weight)
    return learner.model_


def requests_of(count, seed=21):
    rows, labels = named_rows(3 * count, seed=seed)
    for i in range(count):
        take = slice(3 * i, 3 * i + 1 + i % 3)
        yield {"rows": rows[take], "labels": labels[take]}


def checked(request, model):
    return request_of(Question(rows=request["rows"], labels=request["labels"]), model, 10_000)


def same_bits(one, other):
    assert one.indices.tolist() == other.indices.tolist()
    assert one.weights.tolist() == other.weights.tolist()
    assert one.intercept.tolist() == other.intercept.tolist()


def newest(folder):
    return load(max(folder.glob("checkpoint-*.thresher")))


def test_rows_are_learned_served_and_kept(begun, tmp_path):
    requests = [*requests_of(40)]
    requests[5]["weights"] = [2.5] * len(requests[5]["rows"])
    with Server(begun, "--learn", tmp_path / "learn") as server:
        description = server.get("/openapi.json")[1]
        assert "/learn" in description["paths"]
        total = 0
        for request in requests:
            status, answer = server.post("/learn", request)
            total += len(request["rows"])
            assert status == 200
            assert answer == {"model": "a", "learned": len(request["rows"]), "rows": total}
        assert f"thresher_rows_learned_total{{model=\"a\"}} {total}" in server.ask(
            "GET", "/metrics"
        )[2].decode()  # fmt: skip
        assert server.stop() == 0
    expected = learned(begun, requests)
    same_bits(newest(tmp_path / "learn"), expected)
    asked = {"rows": named_rows(20, seed=3)[0], "raw": True, "unknown": False}
    with Server(begun, "--learn", tmp_path / "learn") as server:
        answer = server.post("/predict", asked)[1]
        assert answer["version"] == f"rows-{total}"
        raw = expected.decision_function(asked["rows"]).tolist()
        assert [one["raw"] for one in answer["rows"]] == raw


def restored(begun, folder):
    """Return the model, and the number of rows, with which the next process would begin."""
    version = Models(begun).find(None).version
    place = LearnFolder(str(folder), str(begun), version, 300.0)
    learner, rows = place.restore()
    place.release()
    return learner.model_, rows


def killed_while_learning(begun, folder, requests, seconds, every=None):
    """Post requests from one client until the process is killed; return those answered."""
    options = [] if every is None else ["--checkpoint-every", every]
    answered = []
    with Server(begun, "--learn", folder, *options) as server:
        timer = threading.Timer(seconds, server.process.kill)
        timer.start()
        connection = server.connect()
        try:
            for request in requests:
                status, answer = server.post("/learn", request, connection=connection)
                assert status == 200, answer
                answered.append(answer["rows"])
        except (OSError, http.client.HTTPException, ValueError):
            pass  # the process was killed
        timer.join()
        assert server.stop() == -signal.SIGKILL
    return answered


def kills(begun, folder, times, seed=0, every=0.05):
    """Kill the server several times while it learns; check what is there at the end."""
    rng, all_requests, at = np.random.default_rng(seed), [*requests_of(4000)], 0
    sizes = np.cumsum([len(one["rows"]) for one in all_requests])
    for _ in range(times):
        answered = killed_while_learning(
            begun, folder, all_requests[at:], rng.uniform(0.05, 0.4), every
        )
        _, rows = restored(begun, folder)
        # The request that was not answered may have been stored, or not.
        assert rows >= (answered[-1] if answered else 0)
        at = int(np.searchsorted(sizes, rows)) + 1 if rows else 0
        assert rows == 0 or sizes[at - 1] == rows
    same_bits(restored(begun, folder)[0], learned(begun, all_requests[:at]))
    return at


def test_nothing_answered_is_lost_when_the_process_is_killed(begun, tmp_path):
    assert kills(begun, tmp_path / "learn", times=2) > 0


@pytest.mark.soak
def test_nothing_answered_is_lost_in_many_kills(begun, tmp_path):
    assert kills(begun, tmp_path / "learn", times=60, seed=7) > 0


def test_many_clients_share_the_log(begun, tmp_path):
    requests = [*requests_of(60)]
    with Server(begun, "--learn", tmp_path / "learn") as server:
        results = []

        def client(part):
            connection = server.connect()
            results.extend(server.post("/learn", one, connection=connection)[0] for one in part)

        threads = [threading.Thread(target=client, args=(requests[i::6],)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [200] * 60
        server.process.kill()
        server.stop()
    log = next((tmp_path / "learn").glob("log-*"))
    stored = [request for group, _ in read_log(str(log))[1] for request in group]
    assert sorted(map(json.dumps, stored)) == sorted(map(json.dumps, requests))
    same_bits(restored(begun, tmp_path / "learn")[0], learned(begun, stored))


def test_lines_of_text_are_learned(begun, tmp_path):
    text = "1 2.0 |colour red |words sun | price:2\n0 |colour blue | price:-1\n"
    with Server(begun, "--learn", tmp_path / "learn") as server:
        assert server.lines_of_text("/learn?format=vw", text)[1]["learned"] == 2
        status, answer = server.lines_of_text("/learn?format=vw", "|colour red\n")
        assert (status, answer["error"]["row"]) == (422, 1)
        status, answer = server.lines_of_text("/learn?format=vw", "5 |colour red\n")
        assert (status, answer["error"]["row"]) == (422, 1)
        server.process.kill()
        server.stop()
    model, rows = restored(begun, tmp_path / "learn")
    (tmp_path / "rows.vw").write_text(text)
    expected = load(begun).estimator().partial_fit(scan(tmp_path / "rows.vw"))
    assert rows == 2
    same_bits(model, expected.model_)


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"rows": [{"a": 1}]}, {"option": "labels"}),
        ({"rows": [{"a": 1}], "labels": [1, 0]}, {"option": "labels"}),
        ({"rows": [{"a": 1}, {"a": 2}], "labels": [1, "yes"]}, {"row": 2}),
        ({"rows": [{"a": 1}, {"a": {}}], "labels": [1, 0]}, {"row": 2, "feature": "a"}),
        ({"rows": [{"a": 1}], "labels": [1], "weights": [-1]}, {"row": 1}),
        ({"rows": [{"a": 1}], "labels": [1], "weights": 3}, {"option": "weights"}),
        ({"rows": [[1.0]], "labels": [1]}, {}),
        ({"rows": [{"a": 1}], "labels": [[1]]}, {"row": 1}),
    ],
)
def test_rows_that_cannot_be_learned_are_refused(begun, shared, request_, place):
    status, answer = shared.post("/learn", request_)
    assert status == 422
    assert place.items() <= answer["error"].items()
    assert shared.get("/models")[1]["models"][0]["version"] == "rows-0"


@pytest.fixture(scope="module")
def shared(begun, tmp_path_factory):
    with Server(begun, "--learn", tmp_path_factory.mktemp("shared") / "learn") as server:
        yield server


def test_a_regression_learns(tmp_path):
    learner = FTRLRegressor()
    for i in range(30):
        learner.learn_one({"x": i % 5, "y": i % 3}, 2.0 * (i % 5))
    path = write_model(learner.model_, tmp_path / "r.thresher", state=True)
    request = {"rows": [{"x": 1, "y": 0}, {"x": 3}], "labels": [2, 6.5]}
    with Server(path, "--learn", tmp_path / "learn") as server:
        assert server.post("/learn", request)[0] == 200
        assert server.post("/learn", {"rows": [{"x": 1}], "labels": [True]})[0] == 422
        assert server.stop() == 0
    same_bits(newest(tmp_path / "learn"), learned(path, [request]))


def test_a_log_that_cannot_be_written_ends_the_learning_only(begun, tmp_path):
    """The limit on the size of files stands for a full disk."""
    requests = [*requests_of(400)]
    limit = len(json.dumps(requests[:100]))
    command = [sys.executable, "-c", LIMITED.format(limit)]
    with Server(begun, "--learn", tmp_path / "learn", command=command) as server:
        answered = 0
        for request in requests:
            status, answer = server.post("/learn", request)
            if status != 200:
                break
            answered = answer["rows"]
        assert (status, answered > 100) == (503, True)
        assert "the log cannot be written" in answer["error"]["message"]
        assert server.post("/learn", requests[0])[0] == 503
        assert server.get("/healthz")[1]["status"] == "degraded"
        assert server.post("/predict", [{"price": 1}])[0] == 200
        assert server.stop() == 0
    model, rows = restored(begun, tmp_path / "learn")
    assert rows == answered
    sizes = np.cumsum([len(one["rows"]) for one in requests])
    same_bits(model, learned(begun, requests[: int(np.searchsorted(sizes, rows)) + 1]))


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
from thresher.cli import main
main()
"""


def test_requests_that_were_given_up_are_not_learned(begun, tmp_path):
    models = Models(begun)
    model = models.find(None).model
    learning = Learning.open(models, str(tmp_path / "learn"))
    asked = [checked(one, model) for one in requests_of(200)]
    answers = [learning.submit(one) for one in asked]
    given_up = [answer.cancel() for answer in answers]
    kept = [answer.result(60)[0] for answer in answers if not answer.cancelled()]
    learning.close()
    assert learning.rows == sum(kept)
    assert len(kept) + sum(given_up) == 200
    with pytest.raises(Refusal, match="stopping"):
        learning.submit(asked[0])
    assert restored(begun, tmp_path / "learn")[1] == sum(kept)


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


def opened(begun, folder, every=0.0):
    """Begin to learn; return that, and a function that learns a request."""
    models = Models(begun)
    learning = Learning.open(models, str(folder), every=every)

    def submit(one):
        return learning.submit(checked(one, models.find(None).model))

    return learning, submit


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


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


# ---- the log -------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path):
    path = str(tmp_path / "log-00000000.jsonl")
    LearnLog.create(path, {"rows": 0})
    log = LearnLog(path, os.path.getsize(path))
    for i in range(5):
        log.append([{"rows": [{"a": i}], "labels": [1]}])
    log.close()
    return path


def test_a_log_that_was_cut_at_any_byte_has_its_whole_groups(log):
    with open(log, "rb") as file:
        whole = file.read()
    begin = whole.index(b"\n") + 1
    for end in range(begin, len(whole) + 1):
        with open(log, "wb") as file:
            file.write(whole[:end])
        found = [group[0]["rows"][0]["a"] for group, _ in read_log(log)[1]]
        assert found == list(range(whole[begin:end].count(b"\n")))


def test_a_changed_byte_inside_a_log_is_an_error(log):
    with open(log, "rb") as file:
        whole = file.read()
    begin = whole.index(b"\n") + 1
    last = whole.rindex(b"\n", 0, -1)
    for place in range(begin, last, 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        with open(log, "wb") as file:
            file.write(changed)
        with pytest.raises(ValueError, match="is damaged, and more lines follow"):
            list(read_log(log)[1])
