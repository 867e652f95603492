"""`thresher serve --learn`: what was answered is never lost, and has the same bits."""

import http.client
import json
import signal
import sys
import threading

import numpy as np
import pytest

from support.learning import begun_model, checked, learned, newest, requests_of, restored, same_bits
from support.servers import Server, write_model
from support.serving_rows import named_rows
from thresher import FTRLRegressor, load
from thresher.data.scan import scan
from thresher.serving.learn_log import read_log
from thresher.serving.learning import Learning
from thresher.serving.models import Models
from thresher.serving.refusal import Refusal


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return a model file with the state of its learner."""
    return begun_model(tmp_path_factory.mktemp("begun"))


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
