"""`thresher serve`: answer requests over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from thresher.cli.render.output import show
from thresher.serving import Limits, app
from thresher.serving.access import read_token
from thresher.serving.server import check_host, run


def serve(
    models: Sequence[str],
    host: str,
    port: int,
    token_file: str | None,
    reload: float,
    learn: str | None,
    checkpoint_every: float,
    limits: Limits,
    access_log: bool,
    quiet: bool,
) -> int:
    """Serve until a signal; return the exit code."""
    token = read_token(token_file)
    hosts = check_host(host, token)
    application = app(
        list(models),
        limits=limits,
        token=token,
        hosts=hosts,
        reload=reload or None,
        learn=learn,
        checkpoint_every=checkpoint_every,
    )
    names = ", ".join(application.models.names)

    def started(address: str) -> None:
        if not quiet:
            show(f"serving {names} on {address}", error=True)
            if learn is None:
                show(f"try {address}/docs", error=True)

    if quiet:
        logging.getLogger("thresher.serving").setLevel(logging.WARNING)
    run(application, host, port, access_log=access_log, started=started)
    return 0
