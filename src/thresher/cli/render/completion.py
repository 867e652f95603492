"""Completion scripts of shells. All words are in the script, so completing starts no program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thresher.cli.render.help import OptionHelp, options_of, rules_of
from thresher.data.formats import FORMATS
from thresher.data.read_options import UNLABELLED
from thresher.data.writing import WRITTEN
from thresher.losses import CLASSIFIER_LOSSES, REGRESSOR_LOSSES, SKLEARN_NAMES
from thresher.rules import RULES
from thresher.training.scores import SCORES

SHELLS = ("bash", "zsh", "fish")
_LOSSES = tuple(dict.fromkeys((*CLASSIFIER_LOSSES, *REGRESSOR_LOSSES, *SKLEARN_NAMES)))

# Words after an option, where they are not those of a parameter of the rules.
_WORDS: dict[str, tuple[str, ...]] = {
    "--loss": _LOSSES,
    "--format": tuple(FORMATS),
    "--to": WRITTEN,
    "--rules": tuple(RULES),
    "--store": ("auto", "dense", "hashed", "nonzero"),
    "--on-bad-line": ("error", "skip", "quarantine="),
    "--unlabelled": UNLABELLED,
    "--as": ("label", "probability", "raw"),
    "--choose": ("best", "sparsest"),
    "--task": ("auto", "classification", "regression"),
    "--form": ("auto", "crossfit", "stream", "joint"),
    "--mode": ("stages", "average", "columns"),
    "--ray": ("auto", "local"),
    "--class-weight": ("balanced",),
    "--scoring": tuple(name.removeprefix("neg_") for name in SCORES),
}
_NO_FILES = ("NUMBER", "VALUE", "COLUMN", "TIME", "SIZE", "NAME=VALUES", "AB", "SHARE", "FEATURE")


@dataclass(frozen=True)
class Completions:
    """What can follow in a command line.

    Parameters
    ----------
    commands : dict
        What each command does.
    options : dict
        The options of each command.
    """

    commands: dict[str, str]
    options: dict[str, list[OptionHelp]]

    @classmethod
    def of(cls, program: Any, ctx: Any) -> Completions:
        """Return the completions of a program.

        Parameters
        ----------
        program : Commands
        ctx : Context
        """
        from thresher.cli.render.help import first_line

        commands = {name: program.get_command(ctx, name) for name in program.list_commands(ctx)}
        return cls(
            {name: first_line(command) for name, command in commands.items()},
            {name: options_of(command, ctx) for name, command in commands.items()},
        )

    def words(self, command: str, option: OptionHelp) -> tuple[str, ...]:
        """Return the words that can follow an option; empty if they are not known.

        Parameters
        ----------
        command : str
        option : OptionHelp
        """
        if command == "completion" and option.argument:
            return SHELLS
        if command == "man" and option.argument:
            return tuple(self.commands)
        if option.name == "--rule":
            return rules_of(command)
        if option.name in _WORDS:
            return _WORDS[option.name]
        name = option.name.removeprefix("--").replace("-", "_")
        tables = [spec.parameters for spec in RULES.values()]
        choices = [choice for table in tables if name in table for choice in table[name].choices]
        return tuple(dict.fromkeys(str(choice) for choice in choices))

    def files(self, option: OptionHelp) -> bool:
        """Tell whether files can follow an option or be an argument.

        Parameters
        ----------
        option : OptionHelp
        """
        return not option.flag and option.metavar not in _NO_FILES


def script(shell: str, program: Any, ctx: Any) -> str:
    """Return the completion script of a shell.

    Parameters
    ----------
    shell : {"bash", "zsh", "fish"}
    program : Commands
    ctx : Context
    """
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](Completions.of(program, ctx))


# ---- bash ----------------------------------------------------------------------------------------


def _bash(found: Completions) -> str:
    commands = " ".join(found.commands)
    names, values, arguments = [], [], []
    for command, options in found.options.items():
        own = [n for o in options if not o.argument for n in (*o.names, *o.no_names)]
        names.append(f"    {command}) options='{' '.join(own)}' ;;")
        for option in options:
            words = " ".join(found.words(command, option))
            if option.argument:
                if words:
                    arguments.append(f"    {command}) words='{words}' ;;")
            elif not option.flag:
                pattern = "|".join(f"{command}:{name}" for name in option.names)
                kind = f"words='{words}'" if words else f"files={int(found.files(option))}"
                values.append(f"    {pattern}) {kind} ;;")
    return f"""\
# Completion of thresher for bash: eval "$(thresher completion bash)"
_thresher() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} options='' words='' files=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{commands} --help --version' -- "$current"))
    return
  fi
  case $command in
{chr(10).join(names)}
  esac
  case $command:$previous in
{chr(10).join(values)}
  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  [ "$files" = 0 ] && return
  if [ -z "$files" ]; then
    case $current in
      -*) COMPREPLY=($(compgen -W "$options" -- "$current")); return ;;
    esac
    case $command in
{chr(10).join("  " + line for line in arguments)}
    esac
    if [ -n "$words" ]; then
      COMPREPLY=($(compgen -W "$words" -- "$current"))
      return
    fi
  fi
  local IFS=$'\\n'
  COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _thresher thresher
"""


# ---- zsh -----------------------------------------------------------------------------------------


def _zsh(found: Completions) -> str:
    def quoted(text: str) -> str:
        plain = text.replace("\\", "\\\\").replace("'", "'\\''")
        return plain.replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")

    described = "\n".join(f"    '{name}:{quoted(text)}'" for name, text in found.commands.items())
    cases = []
    for command, options in found.options.items():
        lines = []
        for option in options:
            words = " ".join(found.words(command, option))
            action = f"({words})" if words else "_files" if found.files(option) else " "
            if option.argument:
                lines.append(f"'*:{quoted(option.name)}:{action}'")
                continue
            text = quoted(_sentence(option.text))
            for name in (*option.names, *option.no_names):
                value = "" if option.flag else f":{quoted(option.metavar)}:{action}"
                lines.append(f"'*{name}[{text}]{value}'")
        body = " \\\n        ".join(lines)
        cases.append(f"    {command})\n      _arguments -s \\\n        {body} ;;")
    return f"""\
#compdef thresher
# Completion of thresher for zsh: eval "$(thresher completion zsh)", or a file _thresher in $fpath
_thresher() {{
  local -a commands
  commands=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{chr(10).join(cases)}
  esac
}}
compdef _thresher thresher
"""


# ---- fish ----------------------------------------------------------------------------------------


def _fish(found: Completions) -> str:
    def quoted(text: str) -> str:
        plain = text.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{plain}'"

    lines = ["# Completion of thresher for fish: thresher completion fish | source"]
    lines += [
        f"complete -c thresher -n __fish_use_subcommand -f -a {name} -d {quoted(text)}"
        for name, text in found.commands.items()
    ]
    for command, options in found.options.items():
        seen = f"complete -c thresher -n '__fish_seen_subcommand_from {command}'"
        for option in options:
            words = " ".join(found.words(command, option))
            kind = ""
            if words:
                kind = f" -xa {quoted(words)}"
            elif not option.flag:
                kind = " -rF" if found.files(option) else " -x"
            if option.argument:
                lines += [f"{seen} -f -a {quoted(words)}"] if words else []
                continue
            text = quoted(_sentence(option.text))
            for name in (*option.names, *option.no_names):
                flag = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                lines.append(f"{seen} {flag}{kind} -d {text}")
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    """Return the first sentence of a help text, at most 80 characters."""
    first = text.split(". ")[0].rstrip(".")
    return first if len(first) <= 80 else first[:77].rstrip() + "..."
