"""Environments of Python that borrow the packages of this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def borrowing(folder: Path) -> Path:
    """Make an environment in a folder, unless there is one; return its interpreter.

    It sees all packages that are installed here, except those of editable installs.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        command(sys.executable, "-m", "venv", str(folder))
        site = next((folder / "lib").glob("python*")) / "site-packages"
        borrowed = [path for path in sys.path if path.endswith("site-packages")]
        (site / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return python


def pip_install(python: Path, *arguments: str, **env: str) -> None:
    """Install with the pip of an environment."""
    quiet = ["--quiet", "--disable-pip-version-check"]
    command(str(python), "-m", "pip", "install", *quiet, *arguments, **env)


def command(*arguments: str, **env: str) -> None:
    """Run a command; if it fails, end with an error that names it."""
    if subprocess.run(arguments, env={**os.environ, **env}).returncode:
        raise SystemExit(f"error: this failed: {' '.join(arguments)}")
