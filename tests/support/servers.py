"""A real `thresher serve` process on a free loopback port, and a client for it."""

import http.client
import json
import re
import signal
import subprocess
import threading
from pathlib import Path

from support.files import THRESHER, environment

STARTED = re.compile(r"^serving .* on http://([0-9.]+):(\d+)$")


class Server:
    """A server process.

    Parameters
    ----------
    *arguments
        Of `thresher serve`.
    command : list of str
        How to start the program.
    **variables
        Changes of the environment.
    """

    def __init__(self, *arguments, command=THRESHER, **variables):
        command = [*command, "serve", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=environment(**variables),
        )
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if found := STARTED.match(self.lines[-1]):
                self.host, self.port = found[1], int(found[2])
                break
        else:
            raise AssertionError((self.process.wait(), self.lines))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    @property
    def log(self):
        return "\n".join(self.lines)

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=30)

    def ask(self, method, path, body=None, headers=(), connection=None):
        """Return the status, the headers and the body of an answer; JSON as Python types."""
        used = connection or self.connect()
        headers = dict(headers)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        used.request(method, path, body, headers)
        answer = used.getresponse()
        content = answer.read()
        if connection is None:
            used.close()
        if content and answer.headers.get("Content-Type") == "application/json":
            content = json.loads(content)
        return answer.status, answer.headers, content

    def post(self, path, body, **options):
        """Return the status and the body of an answer."""
        status, _, content = self.ask("POST", path, body, **options)
        return status, content

    def get(self, path, **options):
        """Return the status and the body of an answer."""
        status, _, content = self.ask("GET", path, **options)
        return status, content

    def lines_of_text(self, path, text):
        return self.post(path, text.encode(), headers={"Content-Type": "text/plain"})

    def stop(self, number=signal.SIGTERM):
        """Stop the server; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(10)
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *args):
        if self.process.poll() is None:
            self.process.kill()
        self.stop()


def write_model(model, path: Path, **options):
    """Write a model under its final name, as train does."""
    model.save(path, **options)
    return path
