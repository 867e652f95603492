"""The end of Python while a daemon thread is inside the core: the process ends as usual."""

import subprocess
import sys
from itertools import product

import pytest

from support.files import svmlight
from support.slices import sliced

# Ends `delay` seconds after a daemon thread has begun to repeat a call.
PROGRAM = """
import sys, threading, time
import numpy as np
import thresher
delay, path = float(sys.argv[1]), sys.argv[2]
X = np.random.default_rng(0).normal(size=(4000, 100))
y = (X[:, 0] > 0).astype(int)
model = thresher.FTRLClassifier().fit(X, y).model_
begun = threading.Event()

def work():
    begun.set()
    while True:
        CALL

threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(delay)
"""

CALLS = {
    "fit": "thresher.FTRLClassifier(passes=3).fit(X, y)",
    "stabilized": "thresher.StabilizedClassifier(random_state=0).fit(X[:500], y[:500])",
    "coordinate descent": "thresher.CoordinateDescentClassifier().fit(X, y)",
    "predict": "model.predict(X)",
    "file": "thresher.FTRLClassifier().fit(thresher.scan(path))",
}


@pytest.mark.parametrize(("call", "delay"), sliced(product(CALLS, [0.3, 0.33]), 0, 6, 8))
def test_a_daemon_thread_does_not_abort_the_process(tmp_path, call, delay):
    path = svmlight(tmp_path / "rows.svm", repeat=20)
    program = PROGRAM.replace("CALL", CALLS[call])
    done = subprocess.run(
        [sys.executable, "-c", program, str(delay), path],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_objects_that_live_until_the_end_are_not_reported():
    program = (
        "import ctypes, numpy, thresher._core as core; "
        "one = core.WantedNames(numpy.array([1], 'uint64')); "
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
