"""The image, the unit of systemd and the example for the shell."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import context
from support.files import EXAMPLES, environment
from support.servers import Server, write_model

DEPLOY = EXAMPLES.parent / "deploy"
BIN = Path(sys.executable).parent


def instructions():
    """Return the instructions of the Dockerfile, each in one line."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def parsed(words):
    """Return the options that `thresher serve` gets, by name."""
    command, ctx = context("serve")
    command.parse_args(ctx, words)
    return ctx.params


def test_the_image_starts_the_server_as_a_user_without_rights():
    kinds = [line.split()[0] for line in instructions()]
    assert set(kinds) <= {"FROM", "RUN", "COPY", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
                          "ENTRYPOINT"}  # fmt: skip
    assert kinds.index("USER") < kinds.index("ENTRYPOINT") == len(kinds) - 1
    words = json.loads(instructions()[-1].partition(" ")[2])
    assert words[1] == "serve"
    found = parsed([*words[2:], "a=/models/a.thresher"])
    assert (found["host"], found["port"]) == ("0.0.0.0", 8080)
    check = next(line for line in instructions() if line.startswith("HEALTHCHECK"))
    program = json.loads(check.partition(" CMD ")[2])
    assert program[1] == "-c"
    compile(program[2], "HEALTHCHECK", "exec")


def test_the_command_of_the_image_works(tmp_path, named_model):
    """With a token, on all addresses; the check of its health needs none."""
    path = write_model(named_model, tmp_path / "a.thresher")
    token = "a-token-of-enough-letters"
    with Server(path, "--host", "0.0.0.0", THRESHER_TOKEN=token) as server:
        server.host = "127.0.0.1"
        assert server.get("/healthz")[0] == 200
        assert server.get("/models")[0] == 401
        assert server.get("/models", headers={"Authorization": f"Bearer {token}"})[0] == 200


def test_the_unit_starts_the_server():
    text = (DEPLOY / "thresher-serve.service").read_text()
    words = re.search(r"^ExecStart=(.*)$", text, re.M)[1].split()
    assert words[1] == "serve"
    assert parsed(words[2:])["host"] == "127.0.0.1"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path):
    text = (DEPLOY / "thresher-serve.service").read_text()
    unit = tmp_path / "thresher-serve.service"
    unit.write_text(text.replace("/opt/thresher/bin/thresher", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60
    )
    about_unit = [line for line in done.stderr.splitlines() if "thresher-serve" in line]
    assert done.returncode == 0, done.stderr
    assert not about_unit


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_example_for_the_shell(tmp_path, free_port):
    done = subprocess.run(
        ["sh", str(EXAMPLES / "serve.sh"), str(free_port)],
        env=environment(PATH=f"{BIN}:/usr/bin:/bin", TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    health, predicted, explained = map(json.loads, done.stdout.splitlines()[:3])
    assert health["status"] == "ok"
    assert predicted["rows"][0]["label"] == "yes"
    assert explained["rows"][0]["contributions"][0]["feature"] == "colour=red"
    assert 'thresher_rows_total{model="visits"} 2' in done.stdout
    assert list(tmp_path.iterdir()) == []
