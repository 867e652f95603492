"""`--help`, `--help-all` and the help of a rule, as plain text."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from thresher.cli.options.rule_parameters import is_option
from thresher.cli.options.short_help import SHORT
from thresher.cli.render.errors import option_of
from thresher.rules import RULES
from thresher.rules.parameter import Parameter

WIDEST = 100  # columns
_NAMES = 27  # columns of the names of options
_FIRST = "Arguments and options"  # options without a group


@dataclass(frozen=True)
class OptionHelp:
    """An option or argument of a command, as help pages and completions show it.

    Parameters
    ----------
    names : tuple of str
        The long name first, then the short one. An argument has its metavar as its only name.
    no_names : tuple of str
        Names that say the opposite.
    metavar : str
        What its value is; empty for a flag.
    group : str
    text : str
        What it does.
    extra : str
        Its default and its allowed range.
    """

    names: tuple[str, ...]
    no_names: tuple[str, ...]
    metavar: str
    group: str
    text: str
    extra: str = ""
    argument: bool = False

    @property
    def name(self) -> str:
        """The name that tables use."""
        return self.names[0]

    @property
    def flag(self) -> bool:
        """Whether it has no value."""
        return not self.metavar

    @property
    def shown(self) -> str:
        """The names and the value."""
        short = "".join(f"{name}, " for name in self.names[1:])
        value = f" {self.metavar}" if self.metavar and not self.argument else ""
        no = "".join(f", {name}" for name in self.no_names)
        return f"{short}{self.name}{no}{value}"


def plain(text: str) -> str:
    """Return a text without the markup of rich.

    Examples
    --------
    >>> plain("[bold]thresher demo[/]")
    'thresher demo'
    """
    return re.sub(r"\[(?:bold|/bold|/)\]", "", text)


def options_of(command: Any, ctx: Any) -> list[OptionHelp]:
    """Return all options and arguments of a command, in order.

    Parameters
    ----------
    command : Command
    ctx : Context
    """
    return [_help_of(param, ctx) for param in command.get_params(ctx)]


def _help_of(param: Any, ctx: Any) -> OptionHelp:
    text = plain(param.help or "")
    if param.param_type_name == "argument":
        return OptionHelp((param.metavar,), (), param.metavar, _FIRST, text, argument=True)
    names = sorted(param.opts, key=lambda name: not name.startswith("--"))
    metavar = "" if param.is_flag else _metavar(param)
    group = getattr(param, "rich_help_panel", None) or _FIRST
    extra = []
    default = param.default
    if param.show_default and default not in (None, [], ()) and not param.is_flag:
        extra.append(f"Default: {default}.")
    lowest, highest = getattr(param.type, "min", None), getattr(param.type, "max", None)
    if lowest is not None:
        extra.append(f"At least {lowest:g}{f', at most {highest:g}' if highest else ''}.")
    if param.required:
        extra.append("Required.")
    return OptionHelp(
        tuple(names), tuple(param.secondary_opts), metavar, group, text, " ".join(extra)
    )


def _metavar(param: Any) -> str:
    if param.metavar:
        return str(param.metavar)
    kind = str(param.type.name)
    return "NUMBER" if "int" in kind or "float" in kind else "VALUE"


# ---- pages ---------------------------------------------------------------------------------------


def short_page(command: Any, ctx: Any) -> str:
    """Return the page of `--help`: the options people use."""
    known = {option.name: option for option in options_of(command, ctx)}
    lines = [f"Usage: {_usage(command, ctx)}", "", *_about(command, 1)]
    for title, table in SHORT.get(str(command.name), {}).items():
        rows = [(_brief(known[name]), text) for name, text in table.items() if name in known]
        lines += ["", f"{title}:", *_rows(rows)]
    if str(command.name) not in SHORT:
        shown = [option for option in known.values() if option.name not in ("--help", "--help-all")]
        lines += ["", f"{_FIRST}:", *_rows((o.shown, f"{o.text} {o.extra}") for o in shown)]
    return "\n".join([*lines, "", "More help:", *_rows(_more(command, ctx, known))])


def _more(command: Any, ctx: Any, known: Mapping[str, OptionHelp]) -> list[tuple[str, str]]:
    more = [("--help-all", "all options, with all they can do")]
    if "--rule" in known:
        rules = ", ".join(rules_of(str(command.name)))
        more.append(("--rule NAME --help", f"options of a rule: {rules}"))
    return [*more, (f"thresher man {command.name}", "the manual page")]


def rules_of(command: str) -> tuple[str, ...]:
    """Return the rules that `--rule` of a command takes."""
    if command == "tune":
        return tuple(rule for rule in RULES if RULES[rule].lanes)
    return (*RULES, "auto")


def full_page(command: Any, ctx: Any) -> str:
    """Return the page of `--help-all`: all options."""
    lines = [f"Usage: {_usage(command, ctx)}", "", *_about(command)]
    for title, options in grouped(options_of(command, ctx)).items():
        lines += ["", f"{title}:", *_rows((o.shown, f"{o.text} {o.extra}") for o in options)]
    return "\n".join(lines)


def grouped(options: Iterable[OptionHelp]) -> dict[str, list[OptionHelp]]:
    """Return options by group; groups are in the order of their first option."""
    groups: dict[str, list[OptionHelp]] = {}
    for option in options:
        groups.setdefault(option.group, []).append(option)
    return groups


def rule_page(command: Any, ctx: Any, rule: str) -> str:
    """Return the page of `--rule RULE --help`: the parameters of the rule, and their defaults."""
    usage = f"Usage: {_usage(command, ctx)} --rule {rule}"
    if rule == "auto":
        own = [o for o in options_of(command, ctx) if o.group == "--rule auto"]
        about = "A race of several rules chooses rule and parameters."
        rows = [(option.shown, f"{option.text} {option.extra}") for option in own]
        return "\n".join([usage, "", *_wrapped(about), "", "Options of the race:", *_rows(rows)])
    spec, rows = RULES[rule], []
    how = "It learns row by row." if spec.streams else "It holds all rows in memory."
    losses = f"Losses: {', '.join(spec.losses)}."
    for name, parameter in spec.parameters.items():
        if is_option(name):
            rows.append(_generated(name, parameter, spec.streams))
        elif name in SHARED:
            rows.append(_shared(name, parameter, spec.streams))
    page = [usage, "", *_wrapped(spec.paper + "."), *_wrapped(f"{how} {losses}")]
    return "\n".join([*page, "", f"Parameters of {rule}:", *_rows(rows)])


def _generated(name: str, parameter: Parameter, shell: bool) -> tuple[str, str]:
    """Return the names and the text of an option that is generated for a parameter."""
    option = option_of(name)
    flag = parameter.kind == "flag"
    shown = f"{option}, --no-{option.removeprefix('--')}" if flag else f"{option} VALUE"
    allowed = "" if flag else f" ({parameter.allowed()})"
    default = _default(parameter.default_for("classifier", shell))
    return shown, f"{parameter.help}{allowed} Default: {default}."


# Parameters whose options all rules share, in the words of the shell.
SHARED = {
    "loss": ("LOSS", "The loss"),
    "passes": ("NUMBER", "Passes over the data."),
    "shuffle": ("", "Shuffle the rows."),
    "store": ("STORE", "How weights are stored"),
    "tol": ("NUMBER", "Least fall of the loss in a pass; see --valid."),
    "patience": ("NUMBER", "Passes without improvement before stopping."),
    "class_weight": ("A:W,...", "Weights of the classes, or balanced."),
    "random_state": ("NUMBER", "Random seed."),
}


def _shared(name: str, parameter: Parameter, shell: bool) -> tuple[str, str]:
    """Return the names and the text of an option that all rules share."""
    metavar, text = SHARED[name]
    if name == "tol" and not shell:  # the tolerance of the optimum
        text = parameter.help
    if not text.endswith("."):
        text += f": {', '.join(map(str, parameter.choices))}."
    default = (
        "0" if name == "random_state" else _default(parameter.default_for("classifier", shell))
    )
    return f"{option_of(name)} {metavar}".rstrip(), f"{text} Default: {default}."


def _default(value: Any) -> str:
    words = {"None": "none", "True": "on", "False": "off", "inf": "no limit"}
    return words.get(str(value), str(value))


def program_page(group: Any, ctx: Any) -> str:
    """Return the page of `thresher --help`: the commands."""
    rows = [(name, first_line(group.get_command(ctx, name))) for name in group.list_commands(ctx)]
    options = [(o.shown, o.text) for o in options_of(group, ctx)]
    lines = ["Usage: thresher COMMAND ...", "", *_wrapped(plain(group.help)), ""]
    lines += ["Commands:", *_rows(rows, 14), "", "Options:", *_rows(options, 14), ""]
    return "\n".join([*lines, "thresher COMMAND --help shows the options of a command."])


def first_line(command: Any) -> str:
    """Return the first sentence of the help of a command."""
    return plain(inspect.cleandoc(command.help or "")).split("\n\n")[0].replace("\n", " ")


def paragraphs(command: Any) -> list[str]:
    """Return the paragraphs of the help of a command."""
    return [part.replace("\n", " ") for part in plain(command.help or "").split("\n\n")]


def is_example(paragraph: str) -> bool:
    """Tell whether a paragraph is a command to type."""
    return paragraph.startswith(("thresher ", "eval "))


# ---- lines ---------------------------------------------------------------------------------------


def _usage(command: Any, ctx: Any) -> str:
    arguments = [o.name for o in options_of(command, ctx) if o.argument]
    needed = [
        f"{min(param.opts, key=len)} {param.metavar}"
        for param in command.get_params(ctx)
        if param.param_type_name == "option" and param.required
    ]
    return " ".join([f"thresher {command.name}", *arguments, *needed, "[OPTIONS]"])


def _brief(option: OptionHelp) -> str:
    """Return the names of an option, without its opposite."""
    return OptionHelp(option.names, (), option.metavar, "", "", argument=option.argument).shown


def _about(command: Any, most: int | None = None) -> list[str]:
    """Return the help of a command; `most` is the number of paragraphs besides examples."""
    lines: list[str] = []
    texts = 0
    for part in paragraphs(command):
        if is_example(part):
            example = textwrap.wrap(part, _width() - 4, subsequent_indent="    ")
            lines += [*([""] if lines else []), *(f"  {line}" for line in example)]
            continue
        texts += 1
        if most is None or texts <= most:
            lines += [*([""] if lines else []), *_wrapped(part)]
    return lines


def _width() -> int:
    return max(40, min(WIDEST, shutil.get_terminal_size().columns))


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, _width() - 1, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _rows(rows: Iterable[tuple[str, str]], names: int = _NAMES) -> list[str]:
    """Return two columns: names, and what they mean."""
    lines = []
    for name, text in rows:
        wrapped = _wrapped(text.strip(), " " * names) or [""]
        head = f"  {name}"
        if len(head) < names - 1:
            lines.append(head.ljust(names) + wrapped[0][names:])
            lines += wrapped[1:]
        else:
            lines += [head, *wrapped]
    return [line.rstrip() for line in lines]
