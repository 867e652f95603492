"""A fit of a rule that needs all rows at once: its history, its checkpoints, and resuming."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from thresher.data.targets import Targets
from thresher.errors import ModelFileError, setting
from thresher.model.model import Progress
from thresher.rules.parameter import UNRECORDED
from thresher.training import checkpoint as checkpoints
from thresher.training.bits import bits_of, check_bits
from thresher.training.checkpoint import TrainingCheckpoint, kind_of
from thresher.training.observer import Interrupted
from thresher.training.regular_checkpoints import RegularCheckpoints
from thresher.training.run_options import RunOptions
from thresher.training.seeds import seed_of

KIND = "solver"  # the kind of run in checkpoints

_CHANGE_NOTHING = (*UNRECORDED, "callback", "n_jobs")  # parameters that may differ in a resumed run

State = tuple[dict[str, Any], Sequence[bytes]]  # values for JSON, and bytes


class SolverRun:
    """A fit of a rule that needs all rows at once: its history, its checkpoints, and resuming.

    With `options.resume`, the checkpoint is read by the constructor, if there is one: `history`
    and `stopped` are then those of the run that wrote it, `resumed` is the state of its solvers.

    Parameters
    ----------
    owner : str
        Name of the estimator, for messages.
    rule : str
    params : mapping
        All parameters of the estimator.
    rows : sequence
        The data of the fit: first X, then targets, weights and the evaluation set; arrays, sparse
        matrices, `Targets`, None, and tuples of these.
    options : RunOptions, optional

    Attributes
    ----------
    history : list of Progress
    stopped : bool
        Whether the callback has ended the fit.
    resumed : (dict, list of bytes) or None
        The state in the checkpoint; None: the run is not resumed.

    Raises
    ------
    ModelFileError
        If the checkpoint is damaged, or is of another run.
    """

    def __init__(
        self,
        owner: str,
        rule: str,
        params: Mapping[str, Any],
        rows: Sequence[Any],
        options: RunOptions | None = None,
    ) -> None:
        self.owner, self.rule, self.params, self.rows = owner, rule, params, rows
        self.options = options or RunOptions()
        self.observer = self.options.observer
        self.history: list[Progress] = []
        self.stopped = False
        self.resumed: State | None = None
        self._began = time.perf_counter()
        self._checkpoints = RegularCheckpoints(self.options)
        if self.options.checkpoint is not None:
            checkpoints.check_replaceable(self.options.checkpoint)
        if self.options.resume:
            self._resume()

    @cached_property
    def _weighted(self) -> bool:
        weights = self.rows[2] if len(self.rows) > 2 else None
        return weights is not None and bool((np.asarray(weights) != 1.0).any())

    # ---- random numbers ------------------------------------------------------------------------

    @cached_property
    def seed(self) -> int | None:
        """The seed from random_state; None if the rule uses no random numbers."""
        if "random_state" not in self.params:
            return None
        return seed_of(self.params["random_state"], self.owner)

    def generator(self) -> np.random.Generator:
        """Return a new random number generator with the seed."""
        return np.random.default_rng(self.seed)

    # ---- records and interruptions -------------------------------------------------------------

    def record(
        self,
        examples: int,
        loss: float,
        nonzeros: int,
        rate: float,
        valid_loss: float | None = None,
        duality_gap: float | None = None,
    ) -> None:
        """Add a record to the history; pass it to the observer and to the callback.

        Parameters
        ----------
        examples, loss, nonzeros, rate, valid_loss, duality_gap
            As in `Progress`.
        """
        seconds = self._seconds()
        progress = Progress(examples, loss, nonzeros, rate, seconds, valid_loss, duality_gap)
        self.history.append(progress)
        self.observer.tell("record", **progress._asdict())
        callback = self.params["callback"]
        if not self.stopped:
            self.stopped = bool(callback is not None and callback(progress))

    def checkpoint_if_due(self, state: Callable[[], State]) -> None:
        """Stop if the observer says so, or write a checkpoint if it is due.

        It must not be called at the end of the fit.

        Parameters
        ----------
        state : callable
            Returns the state from which the fit can continue.

        Raises
        ------
        Interrupted
            If the observer stops the fit, and a checkpoint was written.
        KeyboardInterrupt
            If the observer stops the fit, and there is no checkpoint file.
        """
        self.stop_if_asked(state)
        self._checkpoints.write_if_due(lambda: self._write(*state()))

    def stop_if_asked(self, state: Callable[[], State]) -> None:
        """Stop if the observer says so; raises as `checkpoint_if_due` does.

        Parameters
        ----------
        state : callable
            As for `checkpoint_if_due`; it may return an earlier state.
        """
        if not self.observer.stops():
            return
        if self.options.checkpoint is None:
            raise KeyboardInterrupt
        self._write(*state())
        raise Interrupted(self._examples())

    def _seconds(self) -> float:
        return time.perf_counter() - self._began

    # ---- checkpoints ---------------------------------------------------------------------------

    def _write(self, about: dict[str, Any], states: Sequence[bytes]) -> None:
        whole = {
            "run": KIND,
            "rule": self.rule,
            "bits": bits_of(self.rule, shuffle=True, weighted=self._weighted),
            "parameters": self._described(),
            "random_state": _shown(self.params.get("random_state")),
            "seed": self.seed,
            "shape": self._shape(),
            "rows": self._digest,
            "history": [list(record._replace(seconds=0.0)) for record in self.history],
            "stopped": self.stopped,
            "state": about,
            "seconds": self._seconds(),
        }
        digest = self.options.write(TrainingCheckpoint(whole, states))
        self.observer.tell("checkpoint", examples=self._examples(), digest=digest)

    def _resume(self) -> None:
        assert self.options.checkpoint is not None
        try:
            saved = self.options.read()
        except FileNotFoundError:
            return
        about = saved.about
        self._check(about)
        now = bits_of(self.rule, shuffle=True, weighted=self._weighted)
        check_bits(about["bits"], now, self.options.checkpoint, saved.version)
        if self.params.get("random_state") is None:
            self.seed = about["seed"]
        self.history = [Progress(*record) for record in about["history"]]
        self.stopped = about["stopped"]
        self.resumed = about["state"], saved.states
        self._began -= float(about["seconds"])
        self.observer.tell("resumed", examples=self._examples(), digest=saved.digest)

    def _check(self, about: Mapping[str, Any]) -> None:
        """Raise ModelFileError if a checkpoint is of another run."""
        path = self.options.checkpoint
        if about.get("run") != KIND:
            raise ModelFileError(
                f"{path}: is from {kind_of(about)}, and the rule {self.rule} needs all rows at once"
            )
        self._same("rule", about["rule"], self.rule)
        for name, now in self._described().items():
            self._same(name, about["parameters"].get(name), now)
        state = self.params.get("random_state")
        if state is not None and self.seed != about["seed"]:
            self._same("random_state", about["random_state"], _shown(state))
            raise ModelFileError(
                (setting("random_state"), " gives another seed than in the run that wrote it; a "
                 "resumed run needs the same seed"),
                place=path,
                parameter="random_state",
                value=state,
            )  # fmt: skip
        if about["shape"] != self._shape() or about["rows"] != self._digest:
            raise ModelFileError(
                f"{path}: the rows are not those of the run that wrote the checkpoint"
                + _shapes(about["shape"], self._shape())
            )

    def _same(self, name: str, before: Any, now: Any) -> None:
        if before != now:
            raise ModelFileError(
                (setting(name), f" was {before!r} in the run that wrote it, and is {now!r} now; a "
                 "resumed run needs the same"),
                place=self.options.checkpoint,
                parameter=name,
                value=now,
            )  # fmt: skip

    def _described(self) -> dict[str, Any]:
        """Return the parameters that a resumed run must share, in types that JSON has."""
        without = (*_CHANGE_NOTHING, "random_state")
        return {name: _plain(v) for name, v in self.params.items() if name not in without}

    def _shape(self) -> list[int]:
        return [int(size) for size in self.rows[0].shape]

    @cached_property
    def _digest(self) -> str:
        """Digest of the rows; computed only when a checkpoint is written or read."""
        digest = hashlib.blake2b(digest_size=16)
        for array in _arrays(self.rows):
            if array is None:
                digest.update(b"none")
                continue
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).ravel().data)
        return digest.hexdigest()

    def _examples(self) -> int:
        return self.history[-1].examples if self.history else 0


def _plain(value: Any) -> Any:
    """Return a parameter in a type that JSON has: unchanged, or as text."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float | None) else repr(value)


def _shown(random_state: Any) -> Any:
    """Return random_state itself if it is a number or None, else the name of its type."""
    known = _plain(random_state)
    return type(random_state).__name__ if isinstance(known, str) else known


def _shapes(before: Sequence[int], now: Sequence[int]) -> str:
    """Return the end of a message about changed rows, if their shape differs."""
    if before == now:
        return ""
    return f", which had {before[0]} rows of {before[1]} features; now {now[0]} of {now[1]}"


def _arrays(rows: Any) -> Iterable[NDArray[Any] | None]:
    """Yield the arrays that rows, labels or weights consist of."""
    if rows is None or isinstance(rows, np.ndarray):
        yield rows
    elif sp.issparse(rows):
        yield from (rows.indptr, rows.indices, rows.data)
    elif isinstance(rows, Targets):
        yield from (rows.values, rows.starts, rows.numbers, np.array([rows.outputs, rows.low]))
    else:
        for part in rows:
            yield from _arrays(part)
