"""`thresher serve --learn`: rows that do not suit, and faults inside of the learner."""

import asyncio
import json

import pytest

from support.servers import write_model
from thresher import OnePassClassifier, load
from thresher.serving import Limits, app
from thresher.serving.learn_request import request_of
from thresher.serving.learning import Learning
from thresher.serving.models import Models
from thresher.serving.question import Question

ROWS = [{"colour": "red", "price": 2.0}, {"colour": "blue", "price": 1.0}]


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return a model file with the state of its learner."""
    learner = OnePassClassifier().partial_fit(ROWS * 20, [1, 0] * 20, classes=[0, 1])
    return write_model(learner.model_, tmp_path_factory.mktemp("begun") / "a.thresher", state=True)


def posted(application, body, path="/learn", content_type=b"application/json"):
    """Return the status and the answer of a request."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = asyncio.run(application.answer("POST", path, body, {b"content-type": content_type}))
    return reply.status, json.loads(reply.body)


def request(model, rows=ROWS):
    return request_of(Question(rows=rows, labels=[1, 0] * (len(rows) // 2)), model, 100)


def weights(folder, begun):
    """Return the weights of a server that begins with a folder."""
    learning = Learning.open(Models(begun), str(folder))
    try:
        return learning._estimator.model_.weights.tolist(), learning.rows
    finally:
        learning.close()


def test_lines_of_numbered_features_are_refused_by_a_model_of_named_ones(begun, tmp_path):
    application = app(begun, learn=str(tmp_path))
    status, answer = posted(application, b"1 1:2\n", "/learn?format=svmlight", b"text/plain")
    assert status == 422
    assert "have numbers, and those of the model have names" in answer["error"]["message"]
    assert posted(application, {"rows": ROWS, "labels": [1, 0]})[0] == 200
    asyncio.run(application.stop())
    assert load(max(tmp_path.glob("checkpoint-*"))).n_features == 2**64
    assert weights(tmp_path, begun)[1] == 2


@pytest.mark.parametrize("count", [3, 30])
def test_lines_of_text_have_the_limit_of_rows(begun, tmp_path, count):
    application = app(begun, learn=str(tmp_path), limits=Limits(rows=2))
    text = b"1 |a b\n" * count
    status, answer = posted(application, text, "/learn?format=vw", b"text/plain")
    assert (status, application.learning.rows) == (413, 0)
    assert "a request may have 2" in answer["error"]["message"]
    asyncio.run(application.stop())


def test_a_large_request_is_checked_in_a_thread(begun, tmp_path, monkeypatch):
    threads = []

    def checked(asked, model, most):
        try:
            threads.append(asyncio.get_running_loop())
        except RuntimeError:
            threads.append(None)
        return request_of(asked, model, most)

    monkeypatch.setattr("thresher.serving.application.request_of", checked)
    application = app(begun, learn=str(tmp_path))
    assert posted(application, {"rows": ROWS * 1000, "labels": [1, 0] * 1000})[0] == 200
    assert threads == [None]
    asyncio.run(application.stop())
