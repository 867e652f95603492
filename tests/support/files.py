"""Small data files of all formats, for tests of the command line and of sources."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from thresher.cli import main
from thresher.data import open_streams
from thresher.data.scan import scan

THRESHER = [sys.executable, "-m", "thresher.cli"]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def thresher(*arguments, code=0, **options):
    """Run the command line in a new process; return what it printed."""
    done = subprocess.run(
        [*THRESHER, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def printed(name, folder, *arguments):
    """Run an example in a folder; return what it prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def svmlight(path: Path, rows=400, features=60, seed=0, classes=(-1, 1), repeat=1) -> Path:
    """Write rows whose label depends on a few features."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(rows):
        keys = np.sort(rng.choice(features, rng.integers(3, 12), replace=False))
        values = rng.uniform(0.1, 2.0, len(keys)).round(3)
        score = values @ np.where(keys % 3 == 0, 1.0, -0.6) + rng.normal(0, 0.3)
        label = classes[int(np.clip((score + 2) / 4 * len(classes), 0, len(classes) - 1))]
        pairs = " ".join(f"{k + 1}:{v}" for k, v in zip(keys, values, strict=True))
        lines.append(f"{label} {pairs}\n")
    path.write_text("".join(lines) * repeat)
    return path


def vw(path: Path, rows=400, seed=0) -> Path:
    """Write rows with named features: words of one namespace decide the label."""
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(rows):
        words = rng.choice(40, 6, replace=False)
        label = 1 if (words % 2 == 0).sum() + rng.normal(0, 0.5) > 3 else -1
        text = " ".join(f"w{word}" for word in words)
        lines.append(f"{label} 'row{number}|word {text} |age:0.1 years:{rng.integers(20, 70)}\n")
    path.write_text("".join(lines))
    return path


def pipe(X, y, size=37):
    """Return rows as a source that can be read only once."""
    return scan(iter([(X[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]))


def environment(**changes):
    """Return the environment with changes."""
    return {**os.environ, **changes}


def called(*arguments, code=0, stdin=b"", stdout=None):
    """Run the command line in this process, which is faster; return what it printed.

    If `stdout` is given, an io.BytesIO, the output goes there. Any exit code will do if `code` is
    None.
    """
    streams = sys.argv, sys.stdin, sys.stdout, sys.stderr
    out, errors = (
        io.TextIOWrapper(buffer, write_through=True)
        for buffer in (stdout or io.BytesIO(), io.BytesIO())
    )
    sys.argv = ["thresher", *map(str, arguments)]
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin)), out, errors
    open_streams._peeked.clear()  # standard input of an earlier call
    try:
        main()
        found = 0
    except SystemExit as end:
        found = end.code or 0
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = streams
    done = subprocess.CompletedProcess(
        list(arguments), found, *(text.buffer.getvalue().decode() for text in (out, errors))
    )
    assert code in (found, None), (found, done.stdout, done.stderr)
    return done
