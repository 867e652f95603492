"""A page for each command of `thresher`, from the same data as `thresher COMMAND --help-all`.

The pages are written to docs/commands/generated before Sphinx looks for files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from thresher.cli.app import app as program
from thresher.cli.render.help import (
    OptionHelp,
    full_page,
    grouped,
    is_example,
    options_of,
    paragraphs,
)
from thresher.cli.render.manual import EXIT_CODES

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def pages() -> dict[str, str]:
    """Return the Markdown of all pages, by the name of the command."""
    root: Any = typer.main.get_command(program)
    context = root.context_class(root, info_name="thresher")
    names = root.list_commands(context)
    return {name: _page(root.get_command(context, name), context) for name in names}


def _page(command: Any, context: Any) -> str:
    usage = full_page(command, context).partition("\n\n")[0].removeprefix("Usage: ")
    lines = [f"# thresher {command.name}", "", "```text", " ".join(usage.split()), "```"]
    for part in paragraphs(command):
        if part.startswith("Exit codes:"):
            continue
        lines += ["", f"```text\n{part}\n```" if is_example(part) else escaped(part)]
    for title, options in grouped(options_of(command, context)).items():
        lines += ["", f"## {title}"]
        lines += [line for option in options for line in ("", *_described(option))]
    codes = [f"- `{code}`: {text}" for code, text in EXIT_CODES.items()]
    return "\n".join([*lines, "", "## Exit codes", "", *codes, ""])


def _described(option: OptionHelp) -> list[str]:
    """Return an option and its meaning, as an entry of a list of definitions."""
    names = option.shown.replace("`", "'")
    return [f"`{names}`", f": {escaped(f'{option.text} {option.extra}'.strip())}"]


def escaped(text: str) -> str:
    """Return plain text as Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>|#$])", r"\\\1", " ".join(text.split()))


def _write(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "commands" / "generated"
    folder.mkdir(exist_ok=True)
    wanted = pages()
    for old in folder.glob("*.md"):
        if old.stem not in wanted:
            old.unlink()
    for name, text in wanted.items():
        file = folder / f"{name}.md"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages when a build begins."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
