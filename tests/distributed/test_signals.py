"""SIGTERM of a process that is connected to Ray, and the end of Ray's own processes."""

import ctypes
import shutil
import signal
import subprocess
import time
from types import SimpleNamespace

from thresher.distributed.ray.cluster import _init
from thresher.distributed.ray.helpers import first_ended, helpers_of_this_process


def test_ray_does_not_replace_the_handler_of_sigterm():
    """Ray's core replaces it in the system, where Python does not see it, to print a stack."""
    caught, libc = [], ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p

    def init(**options):
        signal.signal(signal.SIGTERM, lambda number, frame: caught.append("python of ray"))
        libc.signal(signal.SIGTERM, signal.SIG_IGN)  # the test would not survive Ray's handler

    before = signal.signal(signal.SIGTERM, lambda number, frame: caught.append("ours"))
    try:
        _init(SimpleNamespace(init=init), "local", 1)
        signal.raise_signal(signal.SIGTERM)
        assert caught == ["ours"]
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _init(SimpleNamespace(init=init), "local", 1)
        signal.raise_signal(signal.SIGTERM)
        assert caught == ["ours", "python of ray"]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_helper_process_that_has_ended_is_noticed(tmp_path):
    """As raylet and gcs_server, whose end would soon end this process, too."""
    program = tmp_path / "raylet"
    shutil.copy(shutil.which("sleep"), program)
    before = helpers_of_this_process()
    with subprocess.Popen([program, "60"]) as process:
        own = {process.pid: "raylet"}
        until = time.monotonic() + 20  # the program's name may come after Popen returns
        while helpers_of_this_process() == before and time.monotonic() < until:
            time.sleep(0.01)
        assert helpers_of_this_process() == before | own
        assert first_ended(own) is None
        process.kill()
        while first_ended(own) is None and time.monotonic() < until:
            time.sleep(0.01)
        assert first_ended(own) == "raylet"  # before anybody has waited for it
    assert first_ended(own) == "raylet"
