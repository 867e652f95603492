"""SIGTERM of a process that is connected to Ray."""

import ctypes
import signal
from types import SimpleNamespace

from thresher.distributed.ray.cluster import _init


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
