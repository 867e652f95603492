"""The head of a request: its size and its time are limited, also without a token."""

import json
import socket
import time

import numpy as np
import pytest

from support.servers import Server, write_model
from thresher import FTRLClassifier

POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    X = np.array([[0.0, 1.0], [1.0, 0.0]] * 20)
    path = tmp_path_factory.mktemp("heads") / "a.thresher"
    write_model(FTRLClassifier().fit(X, [0, 1] * 20).model_, path)
    with Server(path, "--timeout", 2) as server:
        yield server


def exchanged(server, *parts, seconds=20):
    """Send parts; return all that is received until the server closes."""
    with socket.create_connection((server.host, server.port), timeout=seconds) as client:
        try:
            for part in parts:
                client.sendall(part)
        except ConnectionError:
            pass  # it has been refused meanwhile
        found = b""
        try:
            while piece := client.recv(1 << 16):
                found += piece
        except ConnectionError:
            pass
        return found


@pytest.mark.parametrize("begin", [b"", b"POST /pre", POST, POST + b"X: "])
def test_a_head_that_does_not_come_ends_its_connection(server, begin):
    start = time.monotonic()
    found = exchanged(server, begin)
    assert 1 < time.monotonic() - start < 10
    assert found.startswith(b"HTTP/1.1 408 ")
    message = json.loads(found.partition(b"\r\n\r\n")[2])["error"]["message"]
    assert message == "the head of the request did not come within 2 seconds"


@pytest.mark.parametrize(
    "begin", [b"GET /models HTTP/1.1\r\nX: ", b"GET /", b"\r\n", POST + b"X-"], ids=repr
)
def test_a_head_that_is_too_long_is_not_kept(server, begin):
    piece = b"\r\n" if begin == b"\r\n" else b"a"
    found = exchanged(server, begin, *[piece * (1 << 18)] * 100)
    assert found == b"" or found.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))


def test_what_follows_the_last_chunk_is_limited(server):
    begin = POST + b"Transfer-Encoding: chunked\r\n\r\n7\r\n[[0,1]]\r\n0\r\nX: "
    start = time.monotonic()
    found = exchanged(server, begin, *[b"a" * (1 << 18)] * 100)
    assert time.monotonic() - start < 1.9  # not the timeout of the body
    assert b"200 OK" not in found


@pytest.mark.parametrize("chunked", [True, False])
def test_large_bodies_are_no_heads(server, chunked):
    body = json.dumps([[0.5, 1.5]] * 9000).encode()
    head = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    parts = [POST, head, b"\r\nConnection: close\r\n\r\n", body]
    if chunked:
        pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
        parts[3:] = [b"%x\r\n%s\r\n" % (len(one), one) for one in pieces] + [b"0\r\n\r\n"]
    found = exchanged(server, b"".join(parts))
    assert found.startswith(b"HTTP/1.1 200 OK")
    assert len(json.loads(found.partition(b"\r\n\r\n")[2])["rows"]) == 9000


def test_a_connection_stays_open_between_requests(server):
    connection = server.connect()
    for _ in range(2):
        assert server.post("/predict", [[0, 1]], connection=connection)[0] == 200
        time.sleep(2.5)
    connection.close()
