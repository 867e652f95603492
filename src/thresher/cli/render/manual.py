"""Manual pages, made from the same data as `--help-all`."""

from __future__ import annotations

import re
from typing import Any

from thresher._version import __version__
from thresher.cli.render.help import (
    OptionHelp,
    first_line,
    grouped,
    is_example,
    options_of,
    paragraphs,
)

EXIT_CODES = {
    "0": "Success.",
    "1": "Bad data or a bad model; or, with --strict, a warning.",
    "2": "Bad usage.",
    "130": "Interrupted.",
    "141": "The reader of standard output has closed it.",
}


def pages(program: Any, ctx: Any) -> dict[str, str]:
    """Return all manual pages, by name: thresher, thresher-train, ...

    Parameters
    ----------
    program : Commands
    ctx : Context
    """
    commands = {name: program.get_command(ctx, name) for name in program.list_commands(ctx)}
    found = {"thresher": _program_page(program, ctx, commands)}
    for name, command in commands.items():
        found[f"thresher-{name}"] = _command_page(command, ctx, list(commands))
    return found


def _program_page(program: Any, ctx: Any, commands: dict[str, Any]) -> str:
    about = program.help.rstrip(".")
    lines = _head("thresher", about)
    lines += [r"\fBthresher\fR \fICOMMAND\fR ...", ".br", r"\fBthresher\fR \fB\-\-version\fR"]
    lines += [".SH DESCRIPTION", _text(program.help), ".SH COMMANDS"]
    for name, command in commands.items():
        lines += [".TP", rf"\fBthresher\-{name}\fR(1)", _text(first_line(command))]
    lines += [".SH OPTIONS", *_options(options_of(program, ctx))]
    return _end(lines, [f"thresher-{name}" for name in commands])


def _command_page(command: Any, ctx: Any, others: list[str]) -> str:
    name, options = str(command.name), options_of(command, ctx)
    lines = _head(f"thresher-{name}", first_line(command).rstrip("."))
    arguments = " ".join(rf"\fI{_text(o.name)}\fR" for o in options if o.argument)
    lines += [rf"\fBthresher {name}\fR {arguments} [\fIOPTIONS\fR]", ".SH DESCRIPTION"]
    for part in paragraphs(command):
        if is_example(part):
            lines += [".PP", ".RS 4", ".nf", _text(part), ".fi", ".RE"]
        elif not part.startswith("Exit codes:"):
            lines += [".PP", _text(part)]
    lines.append(".SH OPTIONS")
    for title, some in grouped(options).items():
        lines += [f".SS {_text(title)}", *_options(some)]
    return _end(lines, ["thresher", *(f"thresher-{other}" for other in others if other != name)])


def _head(name: str, about: str) -> list[str]:
    title = f'.TH {_text(name.upper())} 1 "" "thresher {__version__}" "Manual of Thresher"'
    return [title, ".SH NAME", rf"{_text(name)} \- {_text(about)}", ".SH SYNOPSIS"]


def _options(options: list[OptionHelp]) -> list[str]:
    lines = []
    for option in options:
        names = [rf"\fB{_text(name)}\fR" for name in (*option.names[1:], option.name)]
        if option.argument:
            names = [rf"\fI{_text(option.name)}\fR"]
        names += [rf"\fB{_text(name)}\fR" for name in option.no_names]
        value = rf" \fI{_text(option.metavar)}\fR" if option.metavar and not option.argument else ""
        lines += [".TP", ", ".join(names) + value, _text(f"{option.text} {option.extra}".strip())]
    return lines


def _end(lines: list[str], others: list[str]) -> str:
    lines.append(".SH EXIT STATUS")
    for code, text in EXIT_CODES.items():
        lines += [".TP", rf"\fB{code}\fR", _text(text)]
    see = ",\n".join(rf"\fB{_text(name)}\fR(1)" for name in others)
    return "\n".join([*lines, ".SH SEE ALSO", see]) + "\n"


def _text(text: str) -> str:
    """Return a text as roff: special characters are quoted."""
    quoted = text.replace("\\", r"\e").replace("-", r"\-").replace("^", r"\(ha")
    quoted = quoted.replace("~", r"\(ti").replace("`", r"\(ga")
    return re.sub(r"^(?=[.'])", r"\\&", quoted, flags=re.MULTILINE)
