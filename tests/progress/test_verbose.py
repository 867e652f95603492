"""`verbose` of estimators, searches and selections: output on standard error, and same bits."""

from __future__ import annotations

import fcntl
import os
import pickle
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pytest

import thresher
from support.files import THRESHER, svmlight
from support.slices import sliced
from thresher.rules import RULES
from thresher.stability import StabilitySelection, StreamingStabilitySelection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))
Y = X[:, 0] - X[:, 1] + 0.1 * RNG.normal(size=300)
NAMES = sorted(name for rule in RULES.values() for name in rule.estimators.values())


def targets(name: str):
    return np.digitize(Y, [-0.5, 0.5]) if name.endswith("Classifier") else Y


def made(name: str, **params):
    cls = getattr(thresher, name)
    seeded = {"random_state": 0} if "random_state" in cls().get_params() else {}
    return cls(passes=3, **seeded, **params)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_prints_progress_and_keeps_its_bits(name, capsys, tmp_path):
    quiet = made(name).fit(X, targets(name))
    assert capsys.readouterr().err == ""
    loud = made(name, verbose=1).fit(X, targets(name))
    shown = capsys.readouterr().err.splitlines()
    assert re.search(r"loss +nonzeros", shown[0])
    assert "\x1b" not in "".join(shown)
    assert len(shown) > 1
    if not name.startswith("CoordinateDescent"):  # it ends when the duality gap is small
        assert "%" in shown[1]
    for clf, path in ((quiet, tmp_path / "quiet"), (loud, tmp_path / "loud")):
        history = [record._replace(seconds=0.0) for record in clf.model_.history]
        object.__setattr__(clf.model_, "history", tuple(history))
        clf.model_.save(path)
    assert (tmp_path / "quiet").read_bytes() == (tmp_path / "loud").read_bytes()
    assert "verbose" not in loud.model_.parameters


@pytest.mark.filterwarnings("ignore")
def test_classes_and_stages_of_the_stabilized_rule_are_shown(capsys):
    y = np.digitize(Y, [-1, -0.3, 0.3, 1])
    thresher.StabilizedClassifier(passes=2, random_state=0, verbose=1).fit(X, y)
    shown = capsys.readouterr().err
    assert shown.splitlines()[0].split() == ["class", "stage", "loss", "nonzeros", "done", "left"]
    assert re.search(r"\d/5 ", shown)


@pytest.mark.filterwarnings("ignore")
def test_searches_and_selections_print_progress(capsys):
    ftrl = thresher.FTRLClassifier(passes=2, random_state=0)
    y = Y > 0
    for estimator in (
        thresher.OnePassSearchCV(ftrl, {"l1": [0.1, 1.0]}, verbose=1),
        thresher.SparsityPath(ftrl, verbose=1),
        StabilitySelection(ftrl, pairs=3, permutations=1, random_state=0, verbose=1),
        StreamingStabilitySelection(ftrl, pairs=3, permutations=1, random_state=0, verbose=1),
        thresher.FeatureDiscovery(random_state=0, verbose=1),
        thresher.SparseClassifier(folds=2, random_state=0, budget=0.5, verbose=1),
    ):
        estimator.fit(X, y)
        assert capsys.readouterr().err, type(estimator).__name__
        estimator.set_params(verbose=0).fit(X, y)
        assert capsys.readouterr().err == "", type(estimator).__name__
    thresher.compare(X, y, rules=["ftrl"], orders=1, folds=2, verbose=1)
    assert "rule 1 of 1, FTRL: choosing parameters" in capsys.readouterr().err


def test_verbose_must_be_a_number_and_old_pickles_have_it():
    with pytest.raises(thresher.errors.ParameterError, match="verbose must be a whole number"):
        thresher.FTRLClassifier(verbose="yes").fit(X, Y > 0)
    clf = thresher.FTRLClassifier(passes=1).fit(X, Y > 0)
    state = clf.__getstate__()
    del state["verbose"]
    old = thresher.FTRLClassifier.__new__(thresher.FTRLClassifier)
    old.__setstate__(state)
    assert old.verbose == 0
    assert pickle.loads(pickle.dumps(old)).get_params()["verbose"] == 0
    selector = StabilitySelection(clf)
    del selector.verbose
    assert pickle.loads(pickle.dumps(selector)).get_params(deep=False)["verbose"] == 0


def test_a_checkpoint_can_be_resumed_with_another_verbose(tmp_path, capsys):
    class Stops(thresher.Observer):
        def stops(self):
            return True

    path, whole = tmp_path / "c", made("FTRLClassifier").fit(X, targets("FTRLClassifier"))
    with pytest.raises(thresher.training.observer.Interrupted):
        made("FTRLClassifier").fit(
            X, targets("FTRLClassifier"), observer=Stops(), checkpoint=path, every=0
        )
    again = made("FTRLClassifier", verbose=2).fit(
        X, targets("FTRLClassifier"), checkpoint=path, resume=True
    )
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert "continuing after 300 examples" in capsys.readouterr().err


def on_terminal(arguments: list[str], columns: int, interrupt: bool = False) -> tuple[int, str]:
    """Run a command whose standard error is a terminal; return its exit code and what it shows."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        arguments,
        stderr=other,
        stdout=subprocess.DEVNULL,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # even if it is ignored
    ) as process:
        os.close(other)
        shown = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
            if interrupt and b"%" in shown:
                interrupt = False
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
        process.wait(60)
    os.close(main)
    return process.returncode, shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", sliced([80, 40], 1))
def test_the_shell_on_a_terminal(tmp_path, columns):
    rows = svmlight(tmp_path / "rows.svm", rows=2000)
    train = [*THRESHER, "train", str(rows), "-m", str(tmp_path / "m"), "--rule"]
    descent = ["--step", "coordinate"]
    for rule, more in (("ftrl", ["--passes", "200"]), ("coordinate-descent", descent)):
        code, shown = on_terminal([*train, rule, *more], columns)
        assert code == 0
        heading, _, rest = shown.partition("\n")
        assert heading.split()[-2:] == ["done", "left"]
        parts = rest.rstrip("\n").split("\r")[1:]
        assert all(len(part.removesuffix("\x1b[K")) < columns for part in parts)
        if rule == "ftrl":
            assert "100%" in parts[-1]
        assert rest.endswith("\x1b[K\n")  # the line is complete: the prompt begins a new one
        assert ("[==" in rest) == (columns == 80)


def test_interrupts_leave_the_terminal_clean(tmp_path):
    rows = svmlight(tmp_path / "rows.svm", rows=2000)
    shell = [*THRESHER, "train", str(rows), "-m", str(tmp_path / "m"), "--rule", "ftrl"]
    code, shown = on_terminal([*shell, "--passes", "1000000"], 80, interrupt=True)
    assert code == 130
    assert re.search(r"\x1b\[K\ninterrupted after [\d,]+ examples;[^\n]*\n$", shown)
    script = (
        "import numpy as np, thresher\n"
        "X = np.random.default_rng(0).normal(size=(50_000, 100))\n"
        "thresher.FTRLClassifier(passes=100_000, verbose=1).fit(X, X[:, 0] > 0)\n"
    )
    code, shown = on_terminal([sys.executable, "-c", script], 80, interrupt=True)
    assert code != 0
    assert "\x1b[K\nTraceback" in shown
