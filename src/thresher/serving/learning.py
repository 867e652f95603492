"""Learning while serving: nothing that was answered is lost, whatever happens to the process.

One thread learns. It takes all requests that wait, learns them in order, writes them to the log in
one group, and answers them after the log is on the disk. From time to time it writes a checkpoint,
a model file with the learner's state, and begins a new log. A start reads the newest checkpoint and
learns the requests of its log again, in the same order and by the same calls: the result has the
same bits as if the process had never stopped.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import queue
import re
import threading
import time
from concurrent.futures import Future
from typing import Any

from thresher.atomic import clear_leftovers
from thresher.disk_sync import make_folder, sync_folder
from thresher.errors import DataError, DivergenceError, ModelFileError, ParameterError, setting
from thresher.model.model import Model, load
from thresher.serving.learn_log import LearnLog, read_log
from thresher.serving.learn_request import Request, learn, rows_in
from thresher.serving.models import Models, ServedModel
from thresher.serving.refusal import Refusal

log = logging.getLogger("thresher.serving")

_WAITING = 1000  # requests that wait at most
_GROUP = 256  # requests of a group at most
_CHECKPOINT_BYTES = 64 << 20  # of the log
_CHECKPOINT_SECONDS = 300.0
_PUBLISH_SECONDS = 0.2  # at least, between two models that are served
_PUBLISH_SHARE = 10  # making the served model takes at most one part in this many of the time
_FILES = re.compile(r"(checkpoint|log)-(\d{8})\.(thresher|jsonl)")

_Waiting = tuple[Request, "Future[tuple[int, int]]"]


class Learning:
    """The learner of a served model, with its log and its checkpoints in a folder.

    Parameters
    ----------
    models : Models
        Gets the model after rows were learned.
    folder : LearnFolder
    """

    def __init__(self, models: Models, folder: LearnFolder) -> None:
        self.name = models.names[0]
        self.error = ""
        self.checkpoints = 0
        self._models, self._folder = models, folder
        self._model = models.find(None).model  # its options of reading are used
        self._queue: queue.Queue[_Waiting | None] = queue.Queue(_WAITING)
        self._closed = False
        self._since = time.monotonic()
        self._fresh = False  # whether rows were learned that the served model does not have
        self._next_publish = 0.0
        self._thread = threading.Thread(target=self._run, name="learn", daemon=True)
        with contextlib.ExitStack() as undo:
            undo.callback(folder.release)
            self._estimator, self.rows = folder.restore()
            self._log = folder.opened_log()
            undo.callback(self._log.close)
            self._publish()
            self._thread.start()
            undo.pop_all()

    @classmethod
    def open(cls, models: Models, path: str, every: float = _CHECKPOINT_SECONDS) -> Learning:
        """Begin to learn, or go on where an earlier process stopped.

        Parameters
        ----------
        models : Models
            One model, with a file that has the state of the learner.
        path : str
            The folder; it is made if it is missing.
        every : float
            Seconds between two checkpoints, while rows are learned.
        """
        files = list(models.files.values())
        if len(files) != 1 or len(models.names) != 1:
            raise ParameterError("only one model, from a file, can learn while it is served",
                                 parameter="learn")  # fmt: skip
        if files[0].now.model.multilabel:
            raise ParameterError("a model whose rows have any number of labels cannot learn while "
                                 "it is served", parameter="learn")  # fmt: skip
        return cls(models, LearnFolder(os.fspath(path), files[0].path, files[0].now.version, every))

    def submit(self, request: Request) -> Future[tuple[int, int]]:
        """Learn rows; the result is their number, and that of all rows learned so far.

        It is there after the rows are on the disk.

        Parameters
        ----------
        request : dict
            As `request_of` returns it.
        """
        if self._closed or self.error:
            raise Refusal(503, self.error or "the server is stopping")
        if not self._thread.is_alive():
            raise Refusal(503, "the learner has stopped")
        answer: Future[tuple[int, int]] = Future()
        try:
            self._queue.put_nowait((request, answer))
        except queue.Full:
            raise Refusal(503, f"{_WAITING:,} requests wait to be learned; try again") from None
        return answer

    def gauges(self) -> dict[str, dict[str, float]]:
        """Return its metrics."""
        return {
            "thresher_log_bytes": {self.name: self._log.size},
            "thresher_checkpoints_total": {self.name: self.checkpoints},
        }

    def close(self) -> None:
        """Learn what waits, write a checkpoint, and let the folder go."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        while not self._queue.empty():
            _refuse([item for item in (self._queue.get_nowait(),) if item is not None], "")
        self._log.close()
        self._folder.release()

    # ---- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        running = True
        while running:
            try:
                running = self._turn()
            except Exception as error:  # the thread goes on: it refuses what waits and what comes
                log.exception("model %s: the learner failed", self.name)
                self._fail(f"the learner failed: {error}")
                running, self._fresh = not self._closed, False

    def _turn(self) -> bool:
        """Do what is to be done now; return whether there will be more."""
        group, running = self._next_group()
        try:
            self._learn(group)
        finally:
            _refuse(group, self.error)
        if not self.error and self._is_due(last=not running):
            self._checkpoint()
        if self._fresh and not self.error and time.monotonic() >= self._next_publish:
            self._publish()
        return running

    def _next_group(self) -> tuple[list[_Waiting], bool]:
        """Return all requests that wait; False: there will be no more."""
        soon = self._fresh and not self.error
        wait = max(0.0, self._next_publish - time.monotonic()) if soon else 1.0
        group: list[_Waiting] = []
        try:
            item = self._queue.get(timeout=wait)
            while item is not None:
                if item[1].set_running_or_notify_cancel():  # it cannot be cancelled any more
                    group.append(item)
                if len(group) == _GROUP:
                    return group, True
                item = self._queue.get_nowait()
            return group, False
        except queue.Empty:
            return group, True

    def _learn(self, group: list[_Waiting]) -> None:
        """Learn a group, store it, and answer it."""
        learned: list[_Waiting] = []
        done: list[tuple[int, int]] = []
        for request, answer in group:
            if self.error:
                break
            try:
                count = learn(self._estimator, request, self._model)
            except Exception as error:
                answer.set_exception(_refusal(error))
                self._recover([one for one, _ in learned])
                continue
            self.rows += count
            learned.append((request, answer))
            done.append((count, self.rows))
        if self.error or not learned:
            return
        try:
            self._log.append([request for request, _ in learned])
        except OSError as error:
            self._fail(f"the log cannot be written: {error}")
            return
        self._fresh = True
        for (_, answer), result in zip(learned, done, strict=True):
            answer.set_result(result)

    def _recover(self, learned: list[Request]) -> None:
        """Make the learner anew: a request has failed, and may have changed it."""
        try:
            self._estimator, self.rows = self._folder.restore()
            for request in learned:
                self.rows += learn(self._estimator, request, self._model)
        except Exception as error:
            self._fail(f"the learner cannot be made again: {error}")

    def _fail(self, error: str) -> None:
        self.error = f"{error}; no more rows are learned before the server is started again"
        log.error("model %s: %s", self.name, self.error)

    def _is_due(self, last: bool) -> bool:
        if self.rows == self._folder.rows:
            self._since = time.monotonic()
            return False
        late = time.monotonic() - self._since > self._folder.every
        return last or late or self._log.size > _CHECKPOINT_BYTES

    def _checkpoint(self) -> None:
        try:
            self._folder.checkpoint(self._estimator.model_, self.rows)
        except (OSError, MemoryError, ParameterError) as error:
            self._since = time.monotonic()
            log.error("model %s: no checkpoint: %s", self.name, error)
            return
        self._since = time.monotonic()
        self.checkpoints += 1
        self._log.close()
        try:
            self._log = self._folder.opened_log()
        except OSError as error:
            self._fail(f"the new log cannot be used: {error}")

    def _publish(self) -> None:
        begin = time.monotonic()
        model = self._estimator.model_
        self._models.put(ServedModel(self.name, model, f"rows-{self.rows}"))
        cost = time.monotonic() - begin
        self._next_publish = begin + cost + max(_PUBLISH_SECONDS, _PUBLISH_SHARE * cost)
        self._fresh = False


def _refuse(group: list[_Waiting], error: str) -> None:
    """Refuse the requests of a group that have no answer yet."""
    for _, answer in group:
        if not answer.done():
            answer.set_exception(Refusal(503, error or "the server is stopping"))


def _refusal(error: Exception) -> Exception:
    if isinstance(error, DataError | ParameterError | DivergenceError):
        return Refusal(422, str(error))
    return error


class LearnFolder:
    """A folder with checkpoints and logs: ``checkpoint-N`` and the ``log-N`` of what came after.

    Number 0 has no checkpoint: its log comes after the file of the model itself.

    Parameters
    ----------
    path : str
    model : str
        The file of the model.
    version : str
        Its version; see `ServedModel`.
    every : float
        Seconds between two checkpoints, while rows are learned.

    Attributes
    ----------
    rows : int
        Rows learned before the current log.
    """

    def __init__(self, path: str, model: str, version: str, every: float) -> None:
        self.path, self.model, self.version = path, model, version
        self.rows, self.every = 0, every
        make_folder(path)
        self._lock = os.open(
            os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            if not isinstance(error, BlockingIOError):
                raise type(error)(error.errno, error.strerror, path) from None
            raise ParameterError("another process learns in this folder", place=path) from None
        self._end = 0
        try:
            self.number = max(self._numbers("checkpoint"), default=0)
            clear_leftovers(self._file("checkpoint", self.number + 1))
            if not os.path.exists(self._file("log", self.number)):
                self._complete()
        except BaseException:
            self.release()
            raise

    def restore(self) -> tuple[Any, int]:
        """Return the estimator after everything in the log, and the number of its rows."""
        name = self._file("log", self.number)
        about, groups = read_log(name)
        if about.get("model") != self.version:
            raise ModelFileError(
                f"its log began with another version of {self.model}", place=self.path,
                hint="restore that file, or give another folder to begin with the new one",
            )  # fmt: skip
        self.rows = rows = int(about["rows"])
        base = self._file("checkpoint", self.number) if self.number else self.model
        model = load(base)
        if model.learner is None:
            raise ParameterError(
                "the model has no state of a learner, only its weights", place=base,
                hint=("save it with ", setting("state", True, "save")),
            )  # fmt: skip
        estimator = model.estimator()
        with open(name, "rb") as file:
            self._end = len(file.readline())
        for group, end in groups:
            for request in group:
                rows += learn(estimator, request, model)
            self._end = end
        cut = os.path.getsize(name) - self._end
        if cut:
            log.warning(
                "%s: an incomplete line of %d bytes, never answered, is left out", name, cut
            )
        self._remove_older()
        return estimator, rows

    def opened_log(self) -> LearnLog:
        """Open the log for appending, after what `restore` has read.

        Raises
        ------
        OSError
            After a power cut, the checkpoint or its log may be missing: nothing may be appended.
        """
        sync_folder(self.path)
        return LearnLog(self._file("log", self.number), self._end)

    def checkpoint(self, model: Model, rows: int) -> None:
        """Write a checkpoint and a new log; after an error, the old ones go on.

        The log is first: a log without a checkpoint is not used. Nothing may fail after the
        checkpoint, because the next start uses the new log.
        """
        number = self.number + 1
        end = self._create_log(number, rows)
        model.save(self._file("checkpoint", number), state=True)
        self.number, self.rows, self._end = number, rows, end
        self._remove_older()
        log.info("checkpoint %d after %d rows", number, rows)

    def release(self) -> None:
        """Let another process learn in the folder."""
        os.close(self._lock)

    def _complete(self) -> None:
        """Make the log that is missing: of a new folder, or after the newest checkpoint."""
        if self.number == 0 and self._numbers("log"):
            raise ModelFileError("a checkpoint is missing", place=self.path)
        if self.number:
            about, groups = read_log(self._file("log", self.number - 1))
            self.rows = int(about["rows"]) + sum(map(rows_in, (r for g, _ in groups for r in g)))
        self._create_log(self.number, self.rows)

    def _create_log(self, number: int, rows: int) -> int:
        """Make an empty log; return its size."""
        about = {"model": self.version, "rows": rows, "number": number}
        return LearnLog.create(self._file("log", number), about)

    def _file(self, kind: str, number: int) -> str:
        suffix = "thresher" if kind == "checkpoint" else "jsonl"
        return os.path.join(self.path, f"{kind}-{number:08d}.{suffix}")

    def _numbers(self, kind: str) -> list[int]:
        found = map(_FILES.fullmatch, os.listdir(self.path))
        return [int(match[2]) for match in found if match is not None and match[1] == kind]

    def _remove_older(self) -> None:
        """Remove what is not used any more; what cannot be removed now is removed later."""
        try:
            sync_folder(self.path)  # so that the new files are there after a power cut
            for kind in ("log", "checkpoint"):
                for number in self._numbers(kind):
                    if number < self.number:
                        os.unlink(self._file(kind, number))
        except OSError as error:
            log.warning("%s: old files cannot be removed: %s", self.path, error.strerror)
