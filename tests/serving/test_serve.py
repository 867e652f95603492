"""`thresher serve`: answers of a real server."""

import json
import signal
import socket
import time
from contextlib import closing

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from prometheus_client.parser import text_string_to_metric_families

from support.files import THRESHER
from support.servers import Server, write_model
from support.serving_rows import named_rows
from thresher.data.scan import scan

LIMITS = ("--max-rows", 500, "--max-body", 200_000, "--timeout", 1)


@pytest.fixture(scope="module")
def server(tmp_path_factory, named_model, matrix_model, number_model):
    folder = tmp_path_factory.mktemp("models")
    files = [
        write_model(named_model, folder / "clicks.thresher"),
        write_model(matrix_model, folder / "levels.thresher"),
    ]
    prices = write_model(number_model, folder / "c.thresher")
    with Server(*files, f"prices={prices}", "--reload", 0.05, *LIMITS) as made:
        made.folder = folder
        yield made


@pytest.fixture(scope="module")
def described(server):
    return server.get("/openapi.json")[1]


def check(described, path, content, status=200):
    """Check an answer against the description of the API."""
    method = "post" if "post" in described["paths"][path] else "get"
    answers = described["paths"][path][method]["responses"]
    answer = answers[str(status) if str(status) in answers else f"{status // 100}XX"]
    schema = {**answer["content"]["application/json"]["schema"],
              "components": described["components"]}  # fmt: skip
    Draft202012Validator(schema).validate(content)


def predicted(server, described, model, rows, **options):
    status, answer = server.post("/predict", {"model": model, "rows": rows, **options})
    assert status == 200, answer
    check(described, "/predict", answer)
    return answer["rows"]


# ---- predictions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7, 300])
def test_predictions_have_the_bits_of_the_model(server, described, named_model, count):
    rows, _ = named_rows(count, seed=5)
    found = predicted(server, described, "clicks", rows, probability=True, raw=True)
    assert [one["label"] for one in found] == named_model.predict(rows).tolist()
    assert [one["raw"] for one in found] == named_model.decision_function(rows).tolist()
    shares = named_model.predict_proba(rows).tolist()
    assert [[one["probability"][k] for k in "01"] for one in found] == shares


def test_arrays_have_the_bits_of_the_model(server, described, matrix_model, number_model):
    X = np.random.default_rng(3).normal(size=(20, 4))
    found = predicted(server, described, "levels", X.tolist(), raw=True, top=2)
    assert [one["label"] for one in found] == matrix_model.predict(X).tolist()
    assert [one["raw"] for one in found] == matrix_model.decision_function(X).tolist()
    assert all(one["top"][0]["label"] == one["label"] and len(one["top"]) == 2 for one in found)
    found = predicted(server, described, "prices", X[:, :3].tolist())
    assert [one["value"] for one in found] == number_model.predict(X[:, :3]).tolist()


def test_lines_have_the_bits_of_the_model(server, described, named_model, tmp_path):
    text = "|colour red |words sun cheap | price:0.5\n|colour blue | price:-0.3 other\n"
    (tmp_path / "rows.vw").write_text(text)
    status, answer = server.lines_of_text("/predict?model=clicks&raw=true&format=vw", text)
    assert status == 200
    check(described, "/predict", answer)
    expected = named_model.decision_function(scan(tmp_path / "rows.vw", labelled=False))
    assert [one["raw"] for one in answer["rows"]] == expected.tolist()
    assert answer["rows"][1]["unknown_features"] == ["other"]
    status, answer = server.lines_of_text("/predict?model=levels&raw=1", "1 1:0.5 3:2\n2 2:1\n")
    assert status == 200
    matrix_rows = [[0.5, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    found = predicted(server, described, "levels", matrix_rows, raw=True)
    assert answer["rows"] == found


def test_unknown_features_are_reported(server, described):
    row = {"colour": "violet", "price": 1, "size": 3, "words": ["sun", "rain"]}
    found = predicted(server, described, "clicks", [row, {"price": 1}])
    assert found[0]["unknown_features"] == ["colour^violet", "size", "words^rain"]
    assert "unknown_features" not in found[1]
    found = predicted(server, described, "clicks", [row], unknown=False)
    assert "unknown_features" not in found[0]
    many = {f"f{i}": 1 for i in range(30)}
    found = predicted(server, described, "clicks", [many])[0]
    assert len(found["unknown_features"]) == 20
    assert found["unknown_count"] == 30


def test_an_explanation_reports_unknown_features_as_a_prediction_does(server, described):
    rows = [{"colour": "violet", "price": 1}, {"price": 1}, {f"f{i}": 1 for i in range(30)}]
    expected = predicted(server, described, "clicks", rows)
    for options in ({}, {"unknown": False}):
        status, answer = server.post("/explain", {"model": "clicks", "rows": rows} | options)
        assert status == 200
        check(described, "/explain", answer)
        for one, prediction in zip(answer["rows"], expected, strict=True):
            for name in ("unknown_features", "unknown_count"):
                assert one.get(name) == (None if options else prediction.get(name))
    status, answer = server.lines_of_text("/explain?model=clicks&format=vw", "1 |f other:2\n")
    assert (status, answer["rows"][0]["unknown_features"]) == (200, ["f^other"])


def test_contributions_sum_to_the_score(server, described, named_model):
    rows, _ = named_rows(30, seed=6)
    status, answer = server.post("/explain", {"model": "clicks", "rows": rows, "top": 2})
    assert status == 200
    check(described, "/explain", answer)
    scores = named_model.decision_function(rows).tolist()
    for one, score, row in zip(answer["rows"], scores, rows, strict=True):
        parts = [part["contribution"] for part in one["contributions"]]
        assert one["raw"] == score
        assert sum(parts) + one["others"] + one["intercept"] == pytest.approx(score, abs=1e-12)
        assert parts == sorted(parts, key=abs, reverse=True)
        assert len(parts) == 2
        why = named_model.explain(row)
        assert one["others_count"] == len(why.contributions) - 2
        assert [(part["feature"], part["contribution"]) for part in one["contributions"]] == [
            (part.name, part.contribution) for part in why.top(2)
        ]
        assert {"colour^" + row["colour"], "price", *("words^" + word for word in row["words"])} > {
            part["feature"] for part in one["contributions"]
        }


def test_the_class_to_explain_can_be_chosen(server, described, matrix_model):
    row = [1.0, 2.0, -1.0, 0.5]
    for label in ("low", "mid", "high", None):
        options = {} if label is None else {"label": label}
        _, answer = server.post("/explain", {"model": "levels", "rows": [row], **options})
        check(described, "/explain", answer)
        scores = matrix_model.decision_function([row])[0]
        classes = matrix_model.classes.tolist()
        best = classes[int(np.argmax(scores))]
        assert answer["rows"][0]["label"] == (label or best)
        assert answer["rows"][0]["raw"] == scores[classes.index(label or best)]


# ---- bad requests --------------------------------------------------------------------------------

BAD = [
    (b"", 400, {"message": "the body is empty"}),
    (b"{", 400, {"line": 1, "column": 2}),
    (b'{"rows": [{"a": 1}],\n "rows": [{"a": 2}]}', 400, {"message": "occurs twice"}),
    (b'{"rows": [{"a": NaN}]}', 400, {"message": "NaN is not a number of JSON"}),
    (b'[{"a": ' + b"[" * 100_000 + b"]" * 90_000 + b"}]", 400, {"message": "nested too deeply"}),
    (b'[{"a": ' + b"9" * 10_000 + b"}]", 400, {"message": "not JSON that can be read"}),
    (b'[{"a": "\xff"}]', 400, {"message": "not UTF-8: byte 9"}),
    (b"3", 422, {"message": "found a number"}),
    (b"[]", 422, {"message": "there are no rows"}),
    (b'{"colour": "red"}', 422, {"option": "colour"}),
    (b'{"rows": [{}], "top": 0}', 422, {"option": "top"}),
    (b'{"rows": [{}], "raw": "perhaps"}', 422, {"option": "raw"}),
    (b'[{"a": 1}, [1]]', 422, {"row": 2}),
    (b'[{"a": 1}, {"b": {"c": 1}}]', 422, {"row": 2, "feature": "b"}),
    (b'[{"a": 1e999}]', 422, {"row": 1, "feature": "a", "message": "inf is not a finite number"}),
    (b'[{"price": 1e308}]', 422, {"row": 1, "message": "too large"}),
    (b'[{"a": ["x", 1]}]', 422, {"row": 1, "feature": "a"}),
    (b'[{"\\ud800": 1}]', 422, {"row": 1, "message": "Unicode"}),
    (b"[" + b"{}," * 600 + b"{}]", 413, {"message": "601 rows; a request may have 500"}),
    (b" " * 300_000, 413, {"message": "300,000 bytes; a request may have 200,000"}),
]


@pytest.mark.parametrize(("body", "status", "expected"), BAD)
def test_a_bad_body_is_answered_with_its_place(server, described, body, status, expected):
    headers = {"Content-Type": "application/json"}
    found, answer = server.post("/predict?model=clicks", body, headers=headers)
    assert found == status, answer
    check(described, "/predict", answer, status)
    expected = dict(expected)
    assert expected.pop("message", "") in answer["error"]["message"]
    assert expected.items() <= answer["error"].items()


def test_bad_arrays_and_lines_are_answered_with_their_place(server):
    ask = {"model": "levels", "rows": [[1, 2, 3, 4], [1, 2, 3]]}
    status, answer = server.post("/predict", ask)
    assert (status, answer["error"]["row"]) == (422, 2)
    ask = {"model": "levels", "rows": [[1, 2, 3, 4], [1, 2, "3", 4]]}
    status, answer = server.post("/predict", ask)
    assert (status, answer["error"]["row"], answer["error"]["column"]) == (422, 2, 3)
    status, answer = server.lines_of_text("/predict?model=levels&format=svmlight", "1 1:2\n1 2:x\n")
    assert (status, answer["error"]["line"], answer["error"]["column"]) == (422, 2, 5)
    status, answer = server.lines_of_text("/predict?model=clicks", "what is this\n")
    assert (status, answer["error"]["option"]) == (422, "format")
    status, answer = server.lines_of_text("/predict?model=levels", "1 1:2\n" * 600)
    assert status == 413
    status, answer = server.post("/predict", {"model": "clicks", "rows": [[1.0]]})
    assert status == 422
    assert "as an object" in answer["error"]["message"]


def test_bad_addresses_methods_and_headers(server):
    assert server.post("/predict", [{"a": 1}])[1]["error"]["option"] == "model"
    assert server.post("/predict?model=none", [{"a": 1}])[0] == 404
    assert server.post("/predict?other=clicks", [{"a": 1}])[0] == 422
    assert server.post("/predict?model=a&model=b", [{"a": 1}])[0] == 422
    assert server.get("/nothing")[0] == 404
    assert server.post("/learn", {"rows": [{"a": 1}], "labels": [1]})[0] == 404
    status, headers, _ = server.ask("GET", "/predict")
    assert (status, headers["Allow"]) == (405, "POST")
    assert server.ask("DELETE", "/models")[0] == 405
    assert server.post("/predict", b"x", headers={"Content-Type": "image/png"})[0] == 415
    encoded = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert server.post("/predict", b"x", headers=encoded)[0] == 415
    status, _, body = server.ask("HEAD", "/models")
    assert (status, body) == (200, b"")


def test_other_web_pages_cannot_ask(server):
    assert server.get("/models", headers={"Host": "evil.example"})[0] == 421
    assert server.get("/models", headers={"Origin": "http://evil.example"})[0] == 403
    own = f"http://{server.host}:{server.port}"
    assert server.get("/models", headers={"Origin": own})[0] == 200


def test_a_body_that_does_not_come_is_given_up(server):
    with socket.create_connection((server.host, server.port), timeout=20) as raw:
        raw.sendall(b"POST /predict?model=clicks HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n[")  # fmt: skip
        assert raw.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_client_that_leaves_does_no_harm(server):
    for sent in (
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n[",
        b"\x00",
    ):
        with socket.create_connection((server.host, server.port), timeout=20) as raw:
            raw.sendall(sent)
    assert server.get("/healthz")[1]["status"] == "ok"
    assert "Traceback" not in server.log


# ---- what the server says about itself -----------------------------------------------------------


def test_models_health_and_metrics(server, described, named_model):
    status, answer = server.get("/models")
    check(described, "/models", answer)
    assert [one["name"] for one in answer["models"]] == ["clicks", "levels", "prices"]
    assert answer["models"][0]["nonzeros"] == named_model.nnz
    check(described, "/healthz", server.get("/healthz")[1])
    predicted(server, described, "clicks", [{"price": 1}, {"new": 1}])
    status, headers, text = server.ask("GET", "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = {one.name: one for one in text_string_to_metric_families(text.decode())}
    rows = {one.labels["model"]: one.value for one in families["thresher_rows"].samples}
    assert rows["clicks"] >= 2
    times = families["thresher_request_seconds"]
    assert times.type == "histogram"
    counts = [one for one in times.samples if one.labels.get("path") == "/predict"]
    last = next(one.value for one in counts if one.labels.get("le") == "+Inf")
    assert last == next(one.value for one in counts if one.name.endswith("_count")) > 0
    assert families["process_resident_memory_bytes"].samples[0].value > 1e6
    assert families["thresher_model_nonzeros"].samples[0].value == named_model.nnz


def test_the_description_is_valid_and_complete(described):
    assert described["openapi"].startswith("3.1")
    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    names = set()
    for methods in described["paths"].values():
        for operation in methods.values():
            names.add(operation["operationId"])
            assert "4XX" in operation["responses"]
    assert {"predict", "explain", "models", "healthz", "metrics"} <= names
    text = json.dumps(described)
    for part in text.split('"$ref": "')[1:]:
        where = part.split('"')[0].removeprefix("#/").split("/")
        found = described
        for step in where:
            found = found[step]


def test_a_client_made_from_the_description(server, described, named_model):
    """Each operation becomes a function; those with parameters take them by name."""

    def client(operation):
        for path, methods in described["paths"].items():
            for method, about in methods.items():
                if about["operationId"] == operation:
                    return path, method, [one["name"] for one in about.get("parameters", ())]
        raise AssertionError(operation)

    def call(operation, body=None, **options):
        path, method, known = client(operation)
        assert set(options) <= set(known)
        query = "&".join(f"{name}={json.dumps(value).strip(chr(34))}"
                         for name, value in options.items())  # fmt: skip
        if body is not None:
            content = described["paths"][path][method]["requestBody"]["content"]
            schema = content["application/json"]["schema"]
            described_schema = {**schema, "components": described["components"]}
            Draft202012Validator(described_schema).validate(body)
        status, _, answer = server.ask(method.upper(), f"{path}?{query}", body)
        check(described, path, answer, status)
        return answer

    rows, _ = named_rows(3)
    answer = call("predict", rows, model="clicks", raw=True, top=2)
    expected = named_model.decision_function(rows).tolist()
    assert [one["raw"] for one in answer["rows"]] == expected
    assert len(call("explain", {"rows": rows}, model="clicks", top=1)["rows"]) == 3
    assert len(call("models")["models"]) == 3


def test_the_page_needs_no_network(server):
    status, headers, page = server.ask("GET", "/docs")
    assert status == 200
    assert b"POST /predict" in page
    assert b"clicks" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert b"src=" not in page
    assert b"<link" not in page


# ---- reload --------------------------------------------------------------------------------------


def wait_for(condition):
    for _ in range(400):
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen within 8 seconds")


def test_a_changed_file_is_loaded_and_a_damaged_one_is_not(server, matrix_model, number_model):
    path = server.folder / "c.thresher"
    row = {"model": "prices", "rows": [[1.0, 2.0, 3.0]]}
    first = server.post("/predict", row)[1]
    path.write_bytes(path.read_bytes()[:-9] + b"not model")
    health = wait_for(lambda: (h := server.get("/healthz")[1])["status"] == "degraded" and h)
    assert health["models"]["prices"]["status"] == "old"
    assert str(path) in health["models"]["prices"]["error"]
    assert server.post("/predict", row)[1] == first
    wait_for(lambda: "the new file is not used" in server.log)
    write_model(matrix_model, path)
    wait_for(lambda: server.get("/healthz")[1]["status"] == "ok")
    _status, answer = server.post("/predict", {"model": "prices", "rows": [[1.0, 2.0, 3.0, 4.0]]})
    assert answer["version"] != first["version"]
    assert answer["rows"] == [{"label": matrix_model.predict([[1.0, 2.0, 3.0, 4.0]])[0]}]
    path.unlink()
    wait_for(lambda: server.get("/healthz")[1]["status"] == "degraded")
    write_model(number_model, path)
    wait_for(lambda: server.post("/predict", row)[1].get("version") == first["version"])


# ---- start and stop ------------------------------------------------------------------------------


@pytest.fixture
def hangup_is_not_ignored():
    """The server does what it does without nohup, even if the tests run under it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.usefixtures("hangup_is_not_ignored")
def test_a_signal_ends_it_after_the_requests_that_were_begun(tmp_path, named_model, number):
    path = write_model(named_model, tmp_path / "a.thresher")
    with Server(path) as server, closing(server.connect()) as connection:
        connection.putrequest("POST", "/predict")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "14")
        connection.endheaders(b'[{"pri')
        wait_for(lambda: b"in_progress 2" in server.ask("GET", "/metrics")[2])
        server.process.send_signal(number)
        time.sleep(0.2)
        connection.send(b'ce": 1}]')
        assert connection.getresponse().status == 200
        server.process.wait(60)  # a second signal would end it at once
        assert server.stop() == 0
    assert "Traceback" not in server.log


def test_an_ignored_hangup_stays_ignored(tmp_path, named_model):
    """This is how nohup starts a command."""
    path = write_model(named_model, tmp_path / "a.thresher")
    with Server(path, command=["nohup", *THRESHER]) as server:
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        assert server.get("/healthz")[0] == 200
        assert server.stop() == 0


def test_a_public_address_needs_a_token(tmp_path, named_model, monkeypatch):
    from support.files import called

    monkeypatch.delenv("THRESHER_TOKEN", raising=False)
    path = write_model(named_model, tmp_path / "a.thresher")
    done = called("serve", path, "--host", "0.0.0.0", code=2)
    assert "requests must have a token; give --token-file" in done.stderr
    token = tmp_path / "token"
    token.write_text("short\n")
    token.chmod(0o600)
    assert "16 to 4,096" in called("serve", path, "--token-file", token, code=2).stderr
    token.write_text("a-token-of-enough-letters\n")
    token.chmod(0o644)
    assert "everyone can read" in called("serve", path, "--token-file", token, code=2).stderr
    token.chmod(0o600)
    with Server(path, "--token-file", token) as server:
        assert server.get("/healthz")[0] == 200
        status, headers, _ = server.ask("GET", "/models")
        assert status == 401
        assert headers["WWW-Authenticate"].startswith("Bearer")
        for wrong in ("Bearer a-token-of-enough-letter", "Basic YTpi", "Bearer é"):
            given = {"Authorization": wrong.encode("latin-1")}
            assert server.get("/models", headers=given)[0] == 401
        given = {"Authorization": "Bearer a-token-of-enough-letters"}
        assert server.get("/models", headers=given)[0] == 200
        assert server.get("/openapi.json", headers=given)[1]["security"] == [{"token": []}]


def test_starts_that_cannot_work_say_why(tmp_path, named_model):
    from support.files import called

    path = write_model(named_model, tmp_path / "a.thresher")
    assert "none" in called("serve", tmp_path / "none", code=1).stderr
    assert "two models have the name" in called("serve", path, path, code=2).stderr
    (tmp_path / "b.thresher").write_bytes(b"what")
    assert "b.thresher" in called("serve", tmp_path / "b.thresher", code=1).stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = called("serve", path, "--port", taken.getsockname()[1], code=1)
    assert "in use" in done.stderr.lower()
