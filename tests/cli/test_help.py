"""`--help`, `--help-all`, the help of rules, and usage errors."""

import re

import pytest

from support.commands import COMMANDS, context
from support.files import called
from thresher.cli.options.rule_parameters import is_option
from thresher.cli.options.short_help import LONGEST, SHORT
from thresher.cli.render.errors import option_of
from thresher.cli.render.help import SHARED, options_of
from thresher.rules import RULES

MOST_LINES = 80


def shown(*arguments, columns=80, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    return called(*arguments).stdout


# ---- pages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_short_and_fits(command, columns, monkeypatch):
    for page in ("--help", "--help-all"):
        text = shown(command, page, columns=columns, monkeypatch=monkeypatch)
        assert max(map(len, text.splitlines())) <= columns
        assert "[bold]" not in text
        if page == "--help":
            assert len(text.splitlines()) <= MOST_LINES
    assert shown("--help", columns=columns, monkeypatch=monkeypatch).count(command) >= 1


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_full_help(command, monkeypatch):
    text = shown(command, "--help-all", columns=100, monkeypatch=monkeypatch)
    listed = re.findall(r"^  (\S.*?)(?:  |$)", text, re.MULTILINE)
    for option in options_of(*context(command)):
        assert option.shown in listed, option
        assert option.text


@pytest.mark.parametrize("command", SHORT)
def test_the_table_of_short_help_names_options_that_exist(command):
    known = {option.name: option for option in options_of(*context(command))}
    for topic in SHORT[command].values():
        for name, line in topic.items():
            assert name in known, (command, name)
            assert len(line) <= LONGEST, line
    short = [name for topic in SHORT[command].values() for name in topic]
    assert len(short) == len(set(short))


def test_a_new_option_is_in_the_full_help_only(monkeypatch):
    command, ctx = context("train")
    extra = type(command.params[-1])(param_decls=["--brand-new"], is_flag=True, help="New.")
    monkeypatch.setattr(command, "params", [*command.params, extra])
    from thresher.cli.render import help as pages

    assert "--brand-new" not in pages.short_page(command, ctx)
    assert "--brand-new" in pages.full_page(command, ctx)


@pytest.mark.parametrize("rule", RULES)
def test_help_of_a_rule_lists_its_parameters_with_defaults(rule, monkeypatch):
    text = shown("train", "--rule", rule, "--help", columns=100, monkeypatch=monkeypatch)
    assert text == shown("train", "--help", "--rule", rule, columns=100, monkeypatch=monkeypatch)
    about, _, table = text.partition(f"Parameters of {rule}:\n")
    assert ", ".join(RULES[rule].losses)[:30] in about
    entries = re.split(r"^  (?=--)", table, flags=re.MULTILINE)[1:]
    found = {entry.split()[0].rstrip(","): entry for entry in entries}
    names = [name for name in RULES[rule].parameters if is_option(name) or name in SHARED]
    assert not {"l1", "gravity", "loss", "passes"} & (set(RULES[rule].parameters) - set(names))
    wanted = {option_of(name) for name in names}
    assert set(found) == wanted
    for name, parameter in RULES[rule].parameters.items():
        if is_option(name):
            default = parameter.default_for("classifier", RULES[rule].streams)
            words = {"None": "none", "True": "on", "False": "off", "inf": "no limit"}
            said = words.get(str(default), str(default))
            assert f"Default: {said}." in " ".join(found[option_of(name)].split())


def test_help_of_the_race_and_of_an_unknown_rule(monkeypatch):
    assert "--budget" in shown("train", "--rule", "auto", "--help", monkeypatch=monkeypatch)
    done = called("train", "--rule", "ftlr", "--help", code=2)
    assert done.stderr == "no such rule ftlr; did you mean ftrl? see thresher train --help\n"
    done = called("tune", "--rule", "hard-threshold", "--help", code=2)
    assert "ftrl" in done.stderr


def test_help_as_a_value_is_not_a_question(tmp_path):
    done = called("inspect", tmp_path / "none", "--why", "--help", code=1)
    assert "none" in done.stderr


# ---- usage errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", "x", "--suffle"], "no such option --suffle; did you mean --shuffle? see "
         "thresher train --help"),
        (["train", "x", "--wholly-unknown"], "no such option --wholly-unknown; see thresher train "
         "--help"),
        (["train"], "missing argument DATA...; see thresher train --help"),
        (["train", "x"], "missing option --model MODEL; see thresher train --help"),
        (["train", "x", "-m"], "-m needs a value; see thresher train --help"),
        (["train", "x", "-m", "y", "-q"], "-q needs a value (for no output: --quiet); see "
         "thresher train --help"),
        (["train", "x", "-q", "-m", "y"], "missing option --model MODEL; -q took -m as its value "
         "(for no output: --quiet); see thresher train --help"),
        (["predict", "x", "-q"], "no such option -q (for no output: --quiet); see thresher "
         "predict --help"),
        (["train", "--help", "--rule"], "--rule needs a value; see thresher train --help"),
        (["train", "x", "-m", "y", "--passes", "a"],
         "--passes must be a whole number >= 1; got 'a'; see thresher train --help"),
        (["train", "x", "-m", "y", "--passes", "0"],
         "--passes must be a whole number >= 1; got 0; see thresher train --help"),
        (["train", "x", "-m", "y", "--tol", "z"],
         "--tol must be a number; got 'z'; see thresher train --help"),
        (["inspect", "a", "b"], "got unexpected extra argument(s) (b); see thresher inspect "
         "--help"),
        (["tran"], "no such command tran; did you mean train? see thresher --help"),
        (["--bogus"], "no such option --bogus; see thresher --help"),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_line(arguments, expected):
    done = called(*arguments, code=2)
    assert done.stderr == expected + "\n"
    assert done.stdout == ""


def test_without_arguments_the_commands_are_listed():
    assert "Commands:" in called(code=2).stderr
