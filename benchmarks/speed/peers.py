"""The peers: libraries that lines compare with. `make bench-peers` installs the optional ones.

They go to the folder build/peers and not to .venv, because they must not change the versions of
NumPy, SciPy and scikit-learn that Thresher is tested with. `find` makes them importable, also in
processes that lines start. Without a peer, its lines are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "peers"
# With what they import and the environment of developers does not have. No other packages are
# installed.
OPTIONAL = ("vowpalwabbit==9.11.9", "skglm>=0.5", "celer>=0.7.4", "numba", "llvmlite")
NAMED = ("scikit-learn", "vowpalwabbit", "skglm", "celer", "numba", "numpy", "scipy")


def find() -> None:
    """Make the installed peers importable here and in processes that are started from here."""
    folder = str(FOLDER)
    if folder not in sys.path:
        sys.path.append(folder)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, folder])


def missing(name: str) -> str:
    """Return the reason of a skipped line whose peer is missing."""
    return f"{name} is not installed; make bench-peers"


def versions() -> dict[str, str]:
    """Return the versions of the peers, and of what they compute with."""
    found = {}
    for name in NAMED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def install() -> None:
    """Install the optional peers, without what they depend on."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    target = ["--upgrade", "--no-deps", "--target", str(FOLDER)]
    subprocess.run([*pip, *target, *OPTIONAL], check=True)
    print(f"installed in {FOLDER}: {', '.join(OPTIONAL)}")


if __name__ == "__main__":
    install()
