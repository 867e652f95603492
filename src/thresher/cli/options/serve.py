"""Options of `thresher serve`."""

from __future__ import annotations

from typing import Annotated

import typer

LIMITS = "Limits"


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Models that train wrote. NAME=FILE gives one a name; else it is that of the "
            "file, without suffix.",
        ),
    ],
    port: Annotated[
        int,
        typer.Option(
            "--port",
            "-p",
            metavar="PORT",
            min=0,
            max=65535,
            help="0: a free port, which the first line of output names.",
        ),
    ] = 8080,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Address to listen on. One that other machines can reach needs a token.",
        ),
    ] = "127.0.0.1",
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Requests must have the header Authorization: Bearer TOKEN, with the token in "
            "FILE, or in the environment variable THRESHER_TOKEN. All but /healthz need it.",
            show_default=False,
        ),
    ] = None,
    reload: Annotated[
        float,
        typer.Option(
            "--reload",
            metavar="SECONDS",
            min=0.0,
            help="Look for changed model files this often, and load them. 0: never.",
        ),
    ] = 1.0,
    learn: Annotated[
        str | None,
        typer.Option(
            "--learn",
            metavar="FOLDER",
            help="Answer POST /learn, and keep the log and the checkpoints of what is learned in "
            "FOLDER. After a crash, the same command goes on without a loss. MODEL must be one "
            "file with the state of its learner: train --keep-state.",
            show_default=False,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(
            "--checkpoint-every",
            metavar="SECONDS",
            min=0.0,
            help="With --learn: time between two checkpoints, while rows are learned.",
        ),
    ] = 300.0,
    max_body: Annotated[
        int,
        typer.Option(
            "--max-body",
            metavar="BYTES",
            min=1,
            rich_help_panel=LIMITS,
            help="Bytes of the body of a request.",
        ),
    ] = 16 << 20,
    max_rows: Annotated[
        int,
        typer.Option(
            "--max-rows", metavar="ROWS", min=1, rich_help_panel=LIMITS, help="Rows of a request."
        ),
    ] = 10_000,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.001,
            rich_help_panel=LIMITS,
            help="Time to receive a head, to receive a body, and to compute an answer.",
        ),
    ] = 30.0,
    max_connections: Annotated[
        int,
        typer.Option(
            "--max-connections",
            metavar="NUMBER",
            min=1,
            rich_help_panel=LIMITS,
            help="Connections at the same time; further ones are answered with 503.",
        ),
    ] = 1000,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Write a line for each request.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings.")] = False,
) -> None:
    """Answer requests over HTTP with models.

    [bold]thresher serve clicks.thresher --port 8080[/]

    [bold]curl localhost:8080/predict --json '{"rows": [{"colour": "red"}], "probability": true}'[/]

    Addresses: /predict, /explain, /models, /healthz, /metrics, /openapi.json, /docs, and /learn
    with --learn. SIGTERM or Ctrl-C stops it after the requests that were begun.
    """  # fmt: skip
    from thresher.cli.commands.serve import serve as run
    from thresher.serving.limits import Limits

    limits = Limits(body=max_body, rows=max_rows, seconds=timeout, connections=max_connections)
    raise typer.Exit(
        run(
            models,
            host,
            port,
            token_file,
            reload,
            learn,
            checkpoint_every,
            limits,
            access_log,
            quiet,
        )
    )
