"""The commands of the program, for tests of help, completion and manual pages."""

import typer

from thresher.cli.app import app

PROGRAM = typer.main.get_command(app)
COMMANDS = tuple(PROGRAM.commands)


def context(command):
    """Return a command and a context for it."""
    made = PROGRAM.commands[command]
    return made, made.context_class(made, info_name=command)
