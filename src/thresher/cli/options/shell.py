"""Options of `thresher completion` and `thresher man`."""

from __future__ import annotations

from typing import Annotated

import typer


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the script that lets a shell complete commands, options, rules and losses.

    [bold]eval "$(thresher completion bash)"[/]

    Put this line in ~/.bashrc, or with zsh in ~/.zshrc after compinit. For fish, write the script
    to ~/.config/fish/completions/thresher.fish.
    """
    from thresher.cli.commands.shell import completion as run

    raise typer.Exit(run(shell))


def man(
    command: Annotated[
        str | None,
        typer.Argument(metavar="[COMMAND]", help="A command. Default: thresher itself."),
    ] = None,
    write: Annotated[
        str | None,
        typer.Option(
            "--write",
            metavar="FOLDER",
            help="Write all pages to FOLDER/man1, such as ~/.local/share/man; then man thresher "
            "and man thresher-train show them.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show the manual page of a command, or write all pages to a folder.

    [bold]thresher man train[/]

    If the output is not a terminal, the page is printed as roff.
    """
    from thresher.cli.commands.shell import man as run

    raise typer.Exit(run(command, write))
