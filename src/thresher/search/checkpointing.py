"""Checkpoints of a search: a resumed search has the same result.

A checkpoint has the results of all finished groups of models, the models that are kept, and the
state of the fit that was running: of the lanes of a group, of a plain fit, or of the final fit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from thresher.data.read_options import Stopped
from thresher.errors import ModelFileError
from thresher.model.model import Model, Progress, load
from thresher.search.grid import GridPoint
from thresher.search.model_groups import ModelResult
from thresher.search.pipelines import is_pipeline
from thresher.search.search_identity import bits_of_search, check_same, identity_of
from thresher.search.splits import Splits, options_of_fit
from thresher.threads import threads_of
from thresher.training import checkpoint as checkpoints
from thresher.training.bits import check_bits
from thresher.training.checkpoint import CheckpointPart, TrainingCheckpoint, kind_of
from thresher.training.observer import Interrupted
from thresher.training.run_options import RunOptions

KIND = "search"  # the kind of run

Results = dict[tuple[int, int], ModelResult]


class SearchCheckpoint(CheckpointPart):
    """The checkpoint of a search. With `run.resume`, it is read by the constructor.

    Parameters
    ----------
    run : RunOptions
        With a checkpoint file.
    identity : mapping
        What a resumed search must share; see `search_identity.identity_of`.
    bits : mapping
        Numbers of the behaviours that decide the bits of the results.
    limit : int
        Largest size of all models together, in bytes.
    threads : int
        Number of threads.

    Attributes
    ----------
    limit, threads : int
        Those of the first run: they decide which models train together, and the state of lanes.
    results : dict
        Results of finished groups, by point and split.
    models : dict of int to Model
        Models of all rows that the run before has trained, by point.
    done : int
        Number of finished groups.
    rows : int
        Rows of a pass that were read so far.
    resumed : bool
        Whether a checkpoint was read.

    Raises
    ------
    ModelFileError
        If the checkpoint is damaged, or is of another search.
    """

    def __init__(
        self,
        run: RunOptions,
        identity: Mapping[str, Any],
        bits: Mapping[str, int],
        limit: int,
        threads: int,
    ) -> None:
        self.run, self.identity, self.bits = run, identity, bits
        self.limit, self.threads = limit, threads
        self.results: Results = {}
        self.models: dict[int, Model] = {}
        self.done = self.rows = 0
        self.resumed = False
        self._training: TrainingCheckpoint | None = None  # the fit that a resumed run continues
        self._holds_fit = False  # whether the file has a state of the fit that is running
        self._kept: dict[int, Any] = {}  # fitted estimators of all rows, by point
        self._files: dict[int, bytes] = {}  # the same models as files
        self._written = time.monotonic()
        assert run.checkpoint is not None
        self.path = run.checkpoint
        if run.every < float("inf"):
            checkpoints.check_replaceable(self.path)
        if run.resume:
            self._resume()

    def __fspath__(self) -> str:
        return self.path

    def options(self, **changed: Any) -> RunOptions:
        """Return the options of the next fit; a resumed search continues its first fit."""
        continues = self._training is not None
        return replace(self.run, part=self, resume=continues, **changed)

    # ---- writing -------------------------------------------------------------------------------

    def write(self, saved: TrainingCheckpoint | None = None) -> str:
        """Write the state of the search, and of a fit; return the digest."""
        for number in self._kept.keys() - self._files.keys():
            self._files[number] = _file_of(self._kept[number].model_)
        kept, results = sorted(self._files), sorted(self.results.items())
        training = {} if saved is None else dict(saved.about)
        about = {
            "run": KIND,
            "search": self.identity,
            "bits": self.bits,
            "limit": self.limit,
            "threads": self.threads,
            "done": self.done,
            "rows": self.rows,
            "results": [[*at, *_as_json(one)] for at, one in results],
            "models": kept,
            # Times are beside the rest, so that equal searches have equal digests.
            "seconds": {
                "fit": training.pop("seconds", 0.0),
                "results": [[one.fit_seconds, one.score_seconds] for _, one in results],
            },
            "fit": None if saved is None else training,
            "fit_states": 0 if saved is None else len(saved.states),
        }
        states = [*([] if saved is None else saved.states), *(self._files[n] for n in kept)]
        best, names = ((), None) if saved is None else (saved.best, saved.names)
        digest = TrainingCheckpoint(about, states, best, names).write(self.path)
        self._written, self._holds_fit = time.monotonic(), saved is not None
        return digest

    def finish(self, results: Results, models: Mapping[int, Any]) -> None:
        """Add the results and the kept estimators of the group that was running."""
        self.results |= results
        self._kept |= models
        self.done, self._training, self._holds_fit = self.done + 1, None, False

    def pause(self) -> None:
        """Between two groups: stop if the observer says so, or write if it is due."""
        if self.run.observer.stops():
            self.interrupt()
        if time.monotonic() - self._written < self.run.every:
            return
        try:
            digest = self.write()
        except OSError as error:  # for example a full disk: the next attempt may succeed
            self._written = time.monotonic()
            self.run.observer.warn(f"no checkpoint was written: {error}")
        else:
            self.run.observer.tell("checkpoint", examples=self.rows, digest=digest)

    def interrupt(self) -> NoReturn:
        """Stop between two groups; of the current group, its last checkpoint is kept."""
        if self.done == 0 and not self._holds_fit:
            raise KeyboardInterrupt
        if not self._holds_fit:
            digest = self.write()
            self.run.observer.tell("checkpoint", examples=self.rows, digest=digest)
        raise Interrupted(self.rows)

    # ---- resuming ------------------------------------------------------------------------------

    def read(self) -> TrainingCheckpoint:
        """Return the state of the fit that was running."""
        saved, self._training = self._training, None  # its states may be large
        if saved is None:
            raise FileNotFoundError(self.path)
        return saved

    def _resume(self) -> None:
        try:
            saved = checkpoints.read(self.path)
        except FileNotFoundError:
            message = f"no checkpoint {self.path}: the search starts from the beginning"
            self.run.observer.tell("note", message=message)
            return
        about = saved.about
        if about.get("run") != KIND:
            raise ModelFileError(f"{self.path}: is from {kind_of(about)}, not from a search")
        check_bits(about["bits"], self.bits, self.path, saved.version)
        check_same(self.path, about["search"], self.identity)
        self.limit, self.threads = int(about["limit"]), int(about["threads"])
        self.done, self.rows = int(about["done"]), int(about["rows"])
        times = about["seconds"]["results"]
        for (point, split, *one), seconds in zip(about["results"], times, strict=True):
            self.results[point, split] = _result_of(one, seconds)
        own = int(about["fit_states"])
        for number, content in zip(about["models"], saved.states[own:], strict=True):
            self._files[number] = content
            self.models[number] = _model_of(content)
        if about["fit"] is not None:
            fit = {**about["fit"], "seconds": about["seconds"]["fit"]}
            states = saved.states[:own]
            self._training, self._holds_fit = replace(saved, about=fit, states=states), True
        self.resumed = True
        self.run.observer.tell("resumed", examples=self.rows, digest=saved.digest)


def checkpoint_of(
    run: RunOptions,
    estimator: Any,
    splits: Splits,
    points: Sequence[GridPoint],
    scoring: Any,
    limit: int,
    n_jobs: int | None,
) -> SearchCheckpoint | None:
    """Return the checkpoint of a search; None if `run` has no file for it.

    Parameters
    ----------
    run : RunOptions
    estimator, splits, points, scoring
        As for `identity_of`.
    limit : int
        The memory limit in bytes.
    n_jobs : int or None
        Number of threads.
    """
    if run.checkpoint is None:
        return None
    identity = identity_of(estimator, splits, points, scoring)
    bits = bits_of_search(estimator, splits)
    return SearchCheckpoint(run, identity, bits, limit, threads_of(n_jobs))


def fit_best(
    best: Any, run: RunOptions, saved: SearchCheckpoint | None, *rows: Any, **given: Any
) -> None:
    """Fit an estimator to all rows, after the search.

    Parameters
    ----------
    best : estimator
        An estimator of Thresher, or a Pipeline, whose fit has no checkpoint.
    run : RunOptions
    saved : SearchCheckpoint or None
    *rows, **given
        Arguments of `fit`.
    """
    if is_pipeline(best):
        best.fit(*rows, **given)
        return
    try:
        best.fit(*rows, **options_of_fit(best, run if saved is None else saved.options()), **given)
    except Stopped:
        if saved is None:
            raise
        saved.interrupt()


def _as_json(one: ModelResult) -> list[Any]:
    """Return a result without its times, in types that JSON has."""
    scores = one.scores
    if isinstance(scores, Mapping):
        scores = {name: float(score) for name, score in scores.items()}
    elif scores is not None:
        scores = float(scores)
    record = None if one.record is None else list(one.record)
    return [scores, one.failure, one.nonzeros, record]


def _result_of(saved: list[Any], seconds: list[float]) -> ModelResult:
    scores, failure, nonzeros, record = saved
    made = None if record is None else Progress(*record)
    fit, score = seconds
    return ModelResult(scores, failure, nonzeros, fit, score, made)


def _file_of(model: Model) -> bytes:
    """Return the content of a model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        return path.read_bytes()


def _model_of(content: bytes) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        path.write_bytes(content)
        return load(path)
