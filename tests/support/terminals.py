"""Run the command line on a pipe, and on a terminal that a test reads."""

import os
import pty
import subprocess

from support.files import THRESHER


def on_pipe(*arguments):
    """Run a command; return its exit code and all bytes that it printed."""
    done = subprocess.run(
        [*THRESHER, *map(os.fspath, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    return done.returncode, done.stdout


def on_terminal(*arguments):
    """Run a command on a terminal; return its exit code and all bytes that it printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*THRESHER, *map(os.fspath, arguments)], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    found = b""
    try:
        while chunk := os.read(ours, 65536):
            found += chunk
    except OSError:  # the command has ended
        pass
    finally:
        os.close(ours)
    return process.wait(timeout=120), found
