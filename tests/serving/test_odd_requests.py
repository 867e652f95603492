"""Requests that are odd: repeated members, numbers that are too large, labels of another type."""

import asyncio
import json
import time

import numpy as np
import pytest

from thresher import FTRLClassifier, OnePassClassifier, ParameterError
from thresher.serving import app
from thresher.serving.question import json_of
from thresher.serving.refusal import Refusal

X = np.array([[0.0, 1.0], [1.0, 0.0]] * 20)


@pytest.fixture(scope="module")
def numbered():
    """Return an application with a model of classes that are 1.0 and 2.0."""
    return app({"m": FTRLClassifier().fit(X, [1.0, 2.0] * 20).model_})


def asked(application, method, path, body=b"", headers=None):
    """Return the status and the answer of a request."""
    reply = asyncio.run(application.answer(method, path, body, headers or {}))
    return reply.status, json.loads(reply.body)


def test_a_repeated_member_of_a_large_object_is_found_quickly():
    names = ",".join(f'"{i}":1' for i in range(40_000))
    begin = time.perf_counter()
    with pytest.raises(Refusal, match="'39999' occurs twice"):
        json_of(f'{{{names},"39999":2}}'.encode())
    assert time.perf_counter() - begin < 5  # comparing each name with all takes 30 s


@pytest.mark.parametrize("path", ["/predict", "/explain"])
def test_a_number_beyond_double_precision_is_refused_with_its_place(numbered, path):
    status, answer = asked(numbered, "POST", path, b"[[0,1],[1,-1e999]]")
    assert status == 422
    assert answer["error"] == {"message": "the number is too large", "row": 2, "column": 2}


@pytest.mark.parametrize("label", [b"1", b"1.0", b'"1.0"'])
def test_a_label_that_is_a_whole_number_is_the_class_of_its_value(numbered, label):
    body = b'{"rows": [[1, 2]], "label": ' + label + b"}"
    status, answer = asked(numbered, "POST", "/explain", body)
    assert (status, answer["rows"][0]["label"]) == (200, 1.0)
    assert asked(numbered, "POST", "/explain", body.replace(label, b"3"))[0] == 422


def test_a_model_that_has_seen_one_class_is_served():
    learner = OnePassClassifier()
    for _ in range(3):
        learner.learn_one({"a": 1.0}, "no")
    body = b'{"rows": [{"a": 1}], "top": 2, "probability": true}'
    status, answer = asked(app({"m": learner.model_}), "POST", "/predict", body)
    assert (status, answer["rows"][0]["probability"]) == (200, {"no": 1.0})
    assert [one["label"] for one in answer["rows"][0]["top"]] == ["no"]


def test_names_of_hosts_are_compared_without_case():
    model = FTRLClassifier().fit(X, [0, 1] * 20).model_
    application = app({"m": model}, hosts=("Models.example",))
    for host, status in ((b"models.example:80", 200), (b"MODELS.EXAMPLE", 200), (b"other", 421)):
        assert asked(application, "GET", "/models", headers={b"host": host})[0] == status


@pytest.mark.parametrize("token", ["", " "])
def test_an_empty_token_is_refused(token):
    model = FTRLClassifier().fit(X, [0, 1] * 20).model_
    with pytest.raises(ParameterError, match="the token is empty"):
        app({"m": model}, token=token)
