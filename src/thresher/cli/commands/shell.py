"""`thresher completion` and `thresher man`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from typing import Any

from thresher.atomic import write_whole
from thresher.cli.render.completion import SHELLS, script
from thresher.cli.render.manual import pages
from thresher.cli.render.output import is_shown, show, write_result
from thresher.errors import ParameterError


def _program() -> tuple[Any, Any]:
    """Return the program and its context."""
    import typer

    from thresher.cli.app import app

    program: Any = typer.main.get_command(app)
    return program, program.context_class(program, info_name="thresher")


def completion(shell: str) -> int:
    """Print the completion script of a shell; return the exit code."""
    if shell not in SHELLS:
        raise ParameterError(f"SHELL must be one of {', '.join(SHELLS)}; got {shell!r}")
    write_result(script(shell, *_program()).encode())
    return 0


def man(command: str | None, folder: str | None) -> int:
    """Show a page, or write all pages; return the exit code."""
    found = pages(*_program())
    name = "thresher" if command is None else f"thresher-{command}"
    if name not in found:
        known = ", ".join(page.removeprefix("thresher-") for page in list(found)[1:])
        raise ParameterError(f"there is no command {command}; there are {known}")
    if folder is not None:
        place = os.path.join(os.path.expanduser(folder), "man1")
        os.makedirs(place, exist_ok=True)
        for page, text in found.items():
            write_whole(os.path.join(place, f"{page}.1"), text.encode())
        show(f"{len(found)} pages -> {place}")
        return 0
    if not is_shown() or shutil.which("man") is None:
        write_result(found[name].encode())
        return 0
    with tempfile.NamedTemporaryFile("w", prefix=f"{name}-", suffix=".1") as file:
        file.write(found[name])
        file.flush()
        return subprocess.run(["man", "-l", file.name], check=False).returncode
