"""The classes of commands: their help, their usage errors, and the option `--strict`."""

from __future__ import annotations

import difflib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from thresher.cli.render.output import (
    echo,
    flush_output,
    naming_output,
    output_of_command,
    show,
    show_lines,
)

# Of click, which newer versions of typer bring along.
UsageError: Any = typer.BadParameter.__mro__[1]
ClickError: Any = UsageError.__mro__[1]

_OPTIONS = [
    ("--help", "Show the options people use. With --rule RULE: the options of this rule."),
    ("--help-all", "Show all options."),
]
_QUIET = " (for no output: --quiet)"
_EVENTS = ("train", "tune", "compare")  # their --json prints one object per event
STRICT = "Make every warning an error: exit code 1, and nothing is written."


class Command(TyperCommand):
    """A subcommand: plain help, `--help-all`, and `--strict` if it can warn."""

    warns = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "add_help_option": False})
        if self.warns:
            self.params.append(_flag("--strict", STRICT, "Result and progress"))
        self.params += [_flag(name, text, "Help") for name, text in _OPTIONS]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help that is asked for; else parse as usual."""
        try:
            if {"--help", "--help-all"} & set(args) and not ctx.resilient_parsing:
                given = self.make_parser(ctx).parse_args(args=list(args))[0]
                if given.get("help") or given.get("help_all"):
                    echo(self._page(ctx, given))
                    ctx.exit()
            rest: list[str] = super().parse_args(ctx, args)
        except UsageError as error:
            error.ctx = getattr(error, "ctx", None) or ctx
            raise
        return rest

    def _page(self, ctx: Any, given: dict[str, Any]) -> str:
        from thresher.cli.render import help as pages

        if given.get("help_all"):
            return pages.full_page(self, ctx)
        rule = given.get("rule")
        if rule is None:
            return pages.short_page(self, ctx)
        rules = pages.rules_of(str(self.name))
        if rule not in rules:
            raise typer.BadParameter(
                f"no such rule {rule}{near(rule, rules) or '; it is one of ' + ', '.join(rules)}",
                ctx,
            )
        return pages.rule_page(self, ctx, rule)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; all its warnings pass one place."""
        from thresher.cli.render.warning_sink import warnings_of_command

        strict = bool(ctx.meta.get("thresher.strict"))
        events = self.name in _EVENTS and ctx.params["json"] and not ctx.params["quiet"]
        with warnings_of_command(strict, events):
            return super().invoke(ctx)

    def get_help(self, ctx: Any) -> str:
        """Return the page of `--help`."""
        return self._page(ctx, {})


class QuietCommand(Command):
    """A subcommand that never warns."""

    warns = False


class Commands(TyperGroup):
    """All subcommands; a usage error, or an interruption, is one line."""

    def get_help(self, ctx: Any) -> str:
        """Return the list of commands."""
        from thresher.cli.render.help import program_page

        return program_page(self, ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the subcommand; suggest one for a near miss."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            known = self.list_commands(ctx)
            ctx.fail(f"no such command {args[0]}{near(args[0], known)}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the words of the program; this may print help."""
        with output_of_command(), naming_output():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand."""
        try:
            with output_of_command():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            show("interrupted", error=True)
            raise typer.Exit(130) from None

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; exit with its code."""
        kwargs |= {"standalone_mode": False, "prog_name": "thresher"}
        try:
            code = super().main(*args, **kwargs)
        except UsageError as error:
            show_lines(usage_message(error), error=True)
            code = 2
        except ClickError as error:
            show(error, error=True)
            code = 1
        if not code:
            flush_output()
        raise SystemExit(code or 0)


def _flag(name: str, text: str, group: str) -> TyperOption:
    return TyperOption(
        param_decls=[name],
        is_flag=True,
        default=False,
        expose_value=False,
        help=text,
        rich_help_panel=group,
        callback=_keep_strict if name == "--strict" else None,
    )


def _keep_strict(ctx: Any, param: Any, value: bool) -> None:
    ctx.meta["thresher.strict"] = bool(value)


# ---- usage errors --------------------------------------------------------------------------------


def near(word: str, known: Any) -> str:
    """Return a question with the most similar known word; empty if none is similar.

    Examples
    --------
    >>> near("--suffle", ["--seed", "--shuffle"])
    '; did you mean --shuffle?'
    """
    found = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {found[0]}?" if found else ""


def usage_message(error: Any) -> str:
    """Return a usage error as one line.

    Parameters
    ----------
    error : UsageError
    """
    ctx = error.ctx
    if type(error).__name__ == "NoArgsIsHelpError":
        return str(error.message)
    path = "thresher" if ctx is None else ctx.command_path
    text = _what(error, ctx)
    return f"{text}{'' if text.endswith('?') else ';'} see {path} --help"


def _what(error: Any, ctx: Any) -> str:
    kind, param = type(error).__name__, getattr(error, "param", None)
    if kind == "NoSuchOption":
        name = error.option_name
        params = [] if ctx is None else ctx.command.get_params(ctx)
        known = [opt for p in params for opt in (*p.opts, *p.secondary_opts) if opt[:2] == "--"]
        quiet = _QUIET if name == "-q" and "--quiet" in known else ""
        return f"no such option {name}{quiet or near(name, known)}"
    if kind == "MissingParameter" and param is not None:
        if param.param_type_name == "argument":
            return f"missing argument {param.metavar}{_taken(ctx)}"
        name = next((opt for opt in param.opts if opt.startswith("--")), param.opts[0])
        return f"missing option {name} {param.metavar or ''}".rstrip() + _taken(ctx)
    text = " ".join(str(error.message).split()).rstrip(".")
    if kind == "BadOptionUsage":
        return f"{error.option_name} needs a value{_QUIET if error.option_name == '-q' else ''}"
    if kind == "BadParameter" and param is not None:
        name = param.metavar if param.param_type_name == "argument" else param.opts[0]
        return f"{name} must be {_allowed(param.type)}; got {_value(text)}"
    return text[:1].lower() + text[1:]


def _taken(ctx: Any) -> str:
    """Return a remark if -q, which is not --quiet here, took the next option as its value."""
    values = () if ctx is None else ctx.params.get("interactions") or ()
    taken = next((value for value in values if value.startswith("-")), None)
    return "" if taken is None else f"; -q took {taken} as its value{_QUIET}"


def _allowed(kind: Any) -> str:
    """Return the allowed values of an option, as `Parameter.allowed` words them."""
    words = "a number" if "float" in str(kind.name) else "a whole number"
    lowest, highest = getattr(kind, "min", None), getattr(kind, "max", None)
    words += "" if lowest is None else f" >= {lowest:g}"
    return words + ("" if highest is None else f" and <= {highest:g}")


def _value(text: str) -> str:
    """Return the value that click quotes in a message."""
    return text.partition(" is not ")[0]
