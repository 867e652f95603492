"""Requests to learn, and what a learner makes of them, for tests of serving."""

import time

from support.servers import write_model
from support.serving_rows import named_rows
from thresher import OnePassClassifier, load
from thresher.serving.learn_request import request_of
from thresher.serving.learning import LearnFolder, Learning
from thresher.serving.models import Models
from thresher.serving.question import Question

START = 100


def begun_model(folder):
    """Return a model file with the state of its learner."""
    rows, labels = named_rows(START, seed=20)
    learner = OnePassClassifier()
    for row, label in zip(rows, labels, strict=True):
        learner.learn_one(row, label, classes=[0, 1] if learner._is_new() else None)
    return write_model(learner.model_, folder / "a.thresher", state=True)


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


def restored(begun, folder):
    """Return the model, and the number of rows, with which the next process would begin."""
    version = Models(begun).find(None).version
    place = LearnFolder(str(folder), str(begun), version, 300.0)
    learner, rows = place.restore()
    place.release()
    return learner.model_, rows


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
