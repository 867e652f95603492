"""A subinterpreter cannot import the core, and does no harm to the main interpreter."""

import subprocess
import sys

import pytest

pytest.importorskip("_xxsubinterpreters", reason="later versions of Python have another module")

TRIED = """
import _xxsubinterpreters as interpreters
{before}
second = interpreters.create()
interpreters.run_string(second, '''
try:
    import {module}
except ImportError as error:
    print("refused:", error, flush=True)
''')
interpreters.destroy(second)
import numpy as np
import thresher
X, y = np.array([[0.0, 1.0], [1.0, 0.0]] * 20), [0, 1] * 20
if {first}:
    learner = thresher.FTRLClassifier().fit(X, y)
learner.partial_fit(X, y)
print("main:", learner.predict(X[:2]).tolist())
"""
FIRST = """
import numpy as np
import thresher
X, y = np.array([[0.0, 1.0], [1.0, 0.0]] * 20), [0, 1] * 20
learner = thresher.FTRLClassifier().fit(X, y)
"""


@pytest.mark.parametrize("before", ["", FIRST], ids=["second first", "main first"])
@pytest.mark.parametrize("module", ["thresher._core", "thresher"])
def test_the_import_is_refused(module, before):
    code = TRIED.format(before=before, module=module, first=not before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    refused, main = done.stdout.splitlines()
    assert "thresher can be imported in the main interpreter only" in refused
    assert refused.startswith("refused:")
    assert main == "main: [0, 1]"
