"""The options of a fit on a cluster, and checks of them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from thresher.data.read_options import ReadOptions
from thresher.distributed.modes.table import MODE_OPTIONS
from thresher.errors import ParameterError, setting


@dataclass(frozen=True)
class ClusterOptions:
    """The options of `fit`, which documents them."""

    mode: str | None = None
    address: str | None = None
    workers: int | None = None
    parts: int | None = None
    rounds: int | None = None
    batch: int | None = None
    blocks: int | None = None
    checkpoint: str | None = None
    resume: bool = False
    every: int | None = None
    keep_checkpoint: bool = False
    patience: float = 60.0
    names: bool = True
    reading: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ParameterError if an option is not valid, or needs another one."""
        if self.every is not None and (type(self.every) is not int or self.every < 1):
            raise ParameterError(
                parameter="every", value=self.every, allowed="a whole number of 1 or more"
            )
        known = [option.name for option in fields(ReadOptions)]
        for name in self.reading:
            if name not in known:
                raise ParameterError(
                    f"{name!r} is not an option of fit or of reading; options of reading are "
                    f"{', '.join(known)}"
                )
        if self.checkpoint is not None:
            return
        if self.every is not None:
            raise ParameterError(
                (setting("every"), " needs ", setting("checkpoint"), ", a folder to write "
                 "checkpoints to"),
                parameter="every",
                value=self.every,
            )  # fmt: skip
        for name in ("resume", "keep_checkpoint"):
            if getattr(self, name):
                raise ParameterError(
                    (setting(name, True), " needs ", setting("checkpoint"), ", the folder of the "
                     "checkpoint"),
                    parameter="checkpoint",
                )  # fmt: skip

    def of_mode(self, mode: str) -> dict[str, int]:
        """Return the options that only this mode has; raise ParameterError for those of others."""
        found = {}
        for name, owner in MODE_OPTIONS.items():
            given = getattr(self, name)
            if given is None:
                continue
            if owner != mode:
                raise ParameterError(
                    (setting(name), " is an option of ", setting("mode", owner), f"; the mode is "
                     f"{mode!r}"),
                    parameter=name,
                    value=given,
                )  # fmt: skip
            if type(given) is not int or given < 1:
                raise ParameterError(
                    parameter=name, value=given, allowed="a whole number of 1 or more"
                )
            found[name] = given
        return found
