"""Load on `thresher serve`, beside the bare server that answers a constant; and a soak.

    python benchmarks/serve.py [--data FOLDER] [--seconds 4] [--rounds 3] [--json FILE]
    python benchmarks/serve.py --soak 600 [--data FOLDER]

It needs wrk (Debian: apt install wrk). The rows are those of rcv1, 78 features each, as JSON with
names or as lines of VW text. The bare server is uvicorn with the same settings, whose application
reads the body and answers two bytes. Both run in turn; the best round of each counts, and the
latencies are of that round. Client and server share the machine, and all is on loopback.

The soak keeps wrk busy with good requests, while another client sends bad ones, and the model file
is replaced every second, sometimes by a damaged one. It ends with an error if any good request was
not answered with 200, any bad one not with 4xx, or the memory grew by more than 32 MiB after a
fifth of the time.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thresher import OnePassClassifier

BARE = """
import sys, uvicorn

async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-type", b"application/json"), (b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"{}"})

uvicorn.run(app, port=int(sys.argv[1]), log_config=None, access_log=False, lifespan="off",
            ws="none", proxy_headers=False, server_header=False, limit_concurrency=1000)
"""
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "%s"
local file = io.open("%s", "rb")
wrk.body = file:read("*a")
file:close()
function done(summary, latency, requests)
  io.write(string.format("RESULT %%d %%d %%d %%d %%d %%d %%d\\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    summary.errors.status, summary.errors.connect + summary.errors.read + summary.errors.write,
    summary.errors.timeout))
end
"""
BAD = (b"{", b'[{"a": {}}]', b'{"rows": 3}', b"[1, 2]", b'{"rows": [{}], "top": -1}', b"\xff")


def lines_of(folder: Path, count: int) -> list[str]:
    """Return lines of rcv1 in VW text."""
    with lzma.open(folder / "rcv1_small.vw.xz", "rt") as file:
        return [line.rstrip("\n") for line, _ in zip(file, range(count), strict=False)]


def named(line: str) -> dict[str, float]:
    """Return the features of a line of VW text."""
    space, *features = line.partition("|")[2].split()
    pairs = (feature.partition(":") for feature in features)
    return {f"{space}^{name}": float(value or 1.0) for name, _, value in pairs}


def free_port() -> int:
    """Return a port that was free just now."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextlib.contextmanager
def process(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends."""
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as running:
        try:
            for _ in range(600):
                with contextlib.suppress(OSError):
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
                    connection.request("GET", "/healthz")
                    connection.getresponse()
                    break
                time.sleep(0.05)
            yield running
        finally:
            running.terminate()
            running.wait(60)


def load(port: int, path: str, script: Path, seconds: int, clients: int) -> dict[str, float]:
    """Run wrk; return requests a second, latencies in milliseconds, and errors."""
    done = subprocess.run(
        ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "20s", "-s", str(script),
         f"http://127.0.0.1:{port}{path}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", done.stdout)
    assert found is not None, done.stdout
    requests, duration, p50, p99, status, broken, late = map(int, found.groups())
    return {"requests": 1e6 * requests / duration, "p50": p50 / 1e3, "p99": p99 / 1e3,
            "errors": status + broken + late}  # fmt: skip


def written(folder: Path, name: str, kind: str, body: str) -> Path:
    """Write a script for wrk that posts a body."""
    (folder / f"{name}.body").write_text(body)
    (folder / f"{name}.lua").write_text(SCRIPT % (kind, folder / f"{name}.body"))
    return folder / f"{name}.lua"


def bodies(lines: list[str]) -> dict[str, tuple[int, str, str, str]]:
    """Return for each case its rows, its address, its type and its body."""
    text, one = "text/plain", "application/json"
    vw = "/predict?format=vw"
    rows = [named(line) for line in lines]
    plain = "/predict?unknown=false"
    return {
        "1 row, JSON": (1, "/predict", one, json.dumps(rows[:1])),
        "1 row, JSON, unknown=false": (1, plain, one, json.dumps(rows[:1])),
        "1 row, VW text": (1, vw, text, lines[0] + "\n"),
        "100 rows, JSON": (100, "/predict", one, json.dumps(rows[:100])),
        "100 rows, JSON, unknown=false": (100, plain, one, json.dumps(rows[:100])),
        "100 rows, VW text": (100, vw, text, "\n".join(lines[:100]) + "\n"),
    }


def measure(arguments: argparse.Namespace, folder: Path, model: Path, lines: list[str]) -> None:
    """Print the table of loads."""
    ours, bare = free_port(), free_port()
    found: dict[str, dict[str, Any]] = {}
    serve = [sys.executable, "-m", "thresher.cli", "serve", str(model), "--port", str(ours)]
    with process(serve, ours), process([sys.executable, "-c", BARE, str(bare)], bare):
        cases = bodies(lines)
        for number, (case, (rows, path, kind, body)) in enumerate(cases.items()):
            script = written(folder, f"case{number}", kind, body)
            best: dict[str, dict[str, float]] = {}
            for _ in range(arguments.rounds):
                for name, port, where in (("thresher", ours, path), ("bare", bare, "/")):
                    one = load(port, where, script, arguments.seconds, arguments.clients)
                    if one["errors"]:
                        raise SystemExit(f"{case}: {one['errors']:.0f} errors of {name}")
                    if name not in best or one["requests"] > best[name]["requests"]:
                        best[name] = one
            found[case] = {"rows": rows, **best}
    print("| request | requests/s | rows/s | p50 | p99 | bare requests/s | bare p50 | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for case, one in found.items():
        a, b = one["thresher"], one["bare"]
        print(f"| {case} | {a['requests']:,.0f} | {a['requests'] * one['rows']:,.0f} | "
              f"{a['p50']:.2f} ms | {a['p99']:.2f} ms | {b['requests']:,.0f} | {b['p50']:.2f} ms | "
              f"{a['requests'] / b['requests']:.2f} |")  # fmt: skip
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n")


def soak(seconds: int, folder: Path, model: Path, lines: list[str]) -> None:
    """Keep the server busy; raise an error if anything fails."""
    port, stopped = free_port(), threading.Event()
    served = folder / "served.thresher"
    shutil.copy(model, served)
    other = OnePassClassifier().partial_fit([named(lines[0]), named(lines[1])], [1, -1],
                                            classes=[-1, 1]).model_  # fmt: skip
    other.save(folder / "other.thresher")
    files = [model.read_bytes(), (folder / "other.thresher").read_bytes()]
    counts = {"reloads": 0, "damaged": 0, "bad": 0, "wrong": 0}
    memory: list[int] = []

    def replace() -> None:
        while not stopped.wait(1.0):
            number = counts["reloads"]
            content = files[number % 2]
            if number % 5 == 4:
                content, counts["damaged"] = content[: len(content) // 2], counts["damaged"] + 1
            (folder / "new").write_bytes(content)
            (folder / "new").replace(served)
            counts["reloads"] += 1

    def wrong() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not stopped.wait(0.01):
            body = BAD[counts["bad"] % len(BAD)]
            connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            counts["bad"] += 1
            counts["wrong"] += not 400 <= answer.status < 500

    def watch(number: int) -> None:
        while not stopped.wait(1.0):
            pages = int(Path(f"/proc/{number}/statm").read_text().split()[1])
            memory.append(pages * 4096 >> 10)

    command = [sys.executable, "-m", "thresher.cli", "serve", str(served), "--port", str(port),
               "--reload", "0.2"]  # fmt: skip
    with process(command, port) as running:
        threads = [threading.Thread(target=replace), threading.Thread(target=wrong),
                   threading.Thread(target=watch, args=(running.pid,))]  # fmt: skip
        for thread in threads:
            thread.start()
        _rows, path, kind, body = bodies(lines)["1 row, JSON"]
        script = written(folder, "soak", kind, body)
        one = load(port, path, script, seconds, 8)
        stopped.set()
        for thread in threads:
            thread.join()
    tenth = max(1, len(memory) // 10)
    sizes = [max(memory[at : at + tenth]) >> 10 for at in range(0, len(memory), tenth)]
    print(f"{one['requests'] * seconds:,.0f} requests in {seconds} s with {one['errors']:.0f} "
          f"errors; {counts['bad']:,} bad requests, {counts['wrong']} answered wrongly; "
          f"{counts['reloads']} new files, {counts['damaged']} of them damaged; MiB of "
          f"memory in each tenth of the time: {', '.join(map(str, sizes))}; "
          f"p50 {one['p50']:.2f} ms, p99 {one['p99']:.2f} ms")  # fmt: skip
    if one["errors"] or counts["wrong"] or max(sizes) - sizes[2] > 32:
        raise SystemExit("the soak failed")


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--soak", type=int, metavar="SECONDS")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing (Debian: apt install wrk)")
    lines = lines_of(arguments.data, 1000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        labels = [int(float(line.split()[0])) for line in lines]
        learner = OnePassClassifier().partial_fit(list(map(named, lines)), labels, classes=[-1, 1])
        learner.model_.save(folder / "rcv1.thresher")
        if arguments.soak:
            soak(arguments.soak, folder, folder / "rcv1.thresher", lines)
        else:
            measure(arguments, folder, folder / "rcv1.thresher", lines)


if __name__ == "__main__":
    main()
