"""The models that are served: by name, and loaded again when their files change."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from thresher.errors import ModelFileError, ParameterError
from thresher.model.model import Model, load
from thresher.serving.known_features import KnownFeatures
from thresher.serving.refusal import Refusal

log = logging.getLogger("thresher.serving")

Given = Model | str | os.PathLike[str]
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True)
class ServedModel:
    """A model as one version of its file had it. It never changes; requests hold on to it.

    Attributes
    ----------
    name : str
    model : Model
    version : str
        The first digits of the SHA-256 of the file; empty if the model has no file.
    loaded : float
        When it was loaded, in seconds since 1970.
    """

    name: str
    model: Model
    version: str = ""
    loaded: float = field(default_factory=time.time)

    @cached_property
    def known(self) -> KnownFeatures:
        """What the model knows of features."""
        return KnownFeatures(self.model)

    def about(self) -> dict[str, Any]:
        """Return what `/models` says about it."""
        model = self.model
        classes = None if model.classes is None else model.classes.tolist()
        found: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "task": "regression" if classes is None else "classification",
            "loss": model.loss,
            "rule": model.parameters.get("rule"),
            "nonzeros": model.nnz,
            "features": None if model.n_features == 2**64 else model.n_features,
            "named": bool(model.names),
            "multilabel": model.multilabel,
            "loaded": round(self.loaded, 3),
        }
        if classes is not None:
            found |= {"classes": classes[:1000], "class_count": len(classes)}
        return found


class ModelFile:
    """The file of a served model, and its newest version that could be loaded.

    Parameters
    ----------
    name : str
    path : str
    """

    def __init__(self, name: str, path: str) -> None:
        self.path, self.error, self.loads, self.failures = path, "", 1, 0
        self._used = self._before = _identity(path)
        self.now = ServedModel(name, *_loaded(path))

    def changed(self) -> bool:
        """Tell whether the file has changed since it was last loaded, and is complete.

        A file that changed since the last call may not be complete.
        """
        found = _identity(self.path)
        settled, self._before = found == self._before, found
        return settled and found != self._used

    def reload(self) -> bool:
        """Load the file; keep the model if that fails. Return whether there is a new one."""
        self._used = self._before
        try:
            made = ServedModel(self.now.name, *_loaded(self.path))
        except (OSError, ValueError, MemoryError) as error:
            self.error = str(error) or "not enough memory"
            self.failures += 1
            log.error("model %s: the new file is not used: %s", self.now.name, self.error)
            return False
        self.error = ""
        if made.version == self.now.version:
            return False
        self.now = made
        self.loads += 1
        log.info("model %s: loaded version %s", made.name, made.version)
        return True


class Models:
    """The served models by name.

    Parameters
    ----------
    given : Model, path, sequence of paths, or mapping of names to models or paths
        A path may be "NAME=PATH"; else its name is that of the file, without suffix.

    Examples
    --------
    >>> from thresher import FTRLClassifier
    >>> model = FTRLClassifier().fit([[0.0, 1.0], [1.0, 0.0]] * 20, [0, 1] * 20).model_
    >>> models = Models({"clicks": model})
    >>> models.find(None).name, list(models.names)
    ('clicks', ['clicks'])
    """

    def __init__(self, given: Given | Sequence[Given] | Mapping[str, Given]) -> None:
        self.files: dict[str, ModelFile] = {}
        self._in_memory: dict[str, ServedModel] = {}
        for name, one in _named(given):
            if not _NAME.fullmatch(name):
                raise ParameterError(
                    f"the name of a model must be 1 to 100 letters, digits, '.', '_' or '-'; got "
                    f"{name!r}",
                    hint="name it: NAME=PATH",
                )
            if name in self.names:
                raise ParameterError(f"two models have the name {name!r}", hint="NAME=PATH")
            if isinstance(one, Model):
                self._in_memory[name] = ServedModel(name, one)
            else:
                self.files[name] = ModelFile(name, os.fspath(one))
        if not self.names:
            raise ParameterError("there is no model to serve")

    @property
    def names(self) -> list[str]:
        """The names of all models, in order."""
        return [*self.files, *self._in_memory]

    def all(self) -> Iterator[ServedModel]:
        """Yield all models as they are now."""
        yield from (file.now for file in self.files.values())
        yield from self._in_memory.values()

    def find(self, name: str | None) -> ServedModel:
        """Return a model; refuse the request if there is none, or several and no name.

        Parameters
        ----------
        name : str or None
            None: the only model.
        """
        if name is None:
            if len(self.names) > 1:
                names = ", ".join(self.names)
                raise Refusal(422, f"model must be given: one of {names}", option="model")
            name = self.names[0]
        file = self.files.get(name)
        found = self._in_memory.get(name) if file is None else file.now
        if found is None:
            raise Refusal(404, f"there is no model {name[:100]!r}; the models are "
                          f"{', '.join(self.names)}", option="model")  # fmt: skip
        return found

    def put(self, served: ServedModel) -> None:
        """Serve a model from memory from now on, in place of the one with its name."""
        self.files.pop(served.name, None)
        self._in_memory[served.name] = served


def _named(given: Any) -> list[tuple[str, Given]]:
    if isinstance(given, Mapping):
        return [(str(name), one) for name, one in given.items()]
    if isinstance(given, Model | str | os.PathLike):
        given = [given]
    found: list[tuple[str, Given]] = []
    for one in given:
        if isinstance(one, Model):
            found.append(("model", one))
            continue
        path = os.fspath(one)
        name, sign, rest = path.partition("=")
        if sign and _NAME.fullmatch(name) and not os.path.exists(path):
            found.append((name, rest))
        else:
            found.append((os.path.splitext(os.path.basename(path))[0], path))
    return found


def _identity(path: str) -> tuple[int, ...]:
    """Return what changes if a file is written or replaced; empty if it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _loaded(path: str) -> tuple[Model, str]:
    """Load a model from a copy in memory: a file that is cut while it is read does no harm."""
    with open(path, "rb") as file, open(os.memfd_create("model"), "w+b") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        copy.seek(0)
        version = hashlib.file_digest(copy, "sha256").hexdigest()[:12]
        private = f"/proc/self/fd/{copy.fileno()}"
        try:
            return load(private), version
        except ModelFileError as error:
            raise ModelFileError(str(error).replace(private, path)) from None
