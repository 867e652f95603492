"""Model files: safetensors, with everything that is not an array in one JSON text.

A file has a format number, the version of Thresher that wrote it, and a checksum of all contents.
It has no time stamps. Its tensors are `indptr`, `indices`, `weights`, `intercept` and `history`
(examples, loss, nonzeros, rate, valid_loss; NaN for None). If features have names, there are also
`named` (the features), `name_ends` (where each name ends) and `name_text` (in UTF-8). Format 1 has
the names in the JSON text, which takes seconds to read for a million names. If there is evidence of
each feature, the file has the arrays of the evidence, too.

With the state of the learner, the format is 3, and the file also has tensors whose names begin with
`learner_`. They have a checksum of their own: they are read only when training goes on.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher._version import __version__
from thresher.atomic import written_whole
from thresher.certificates import Certificate
from thresher.errors import ModelFileError, ParameterError
from thresher.file_format import (
    RepeatedEntryError,
    check_format,
    from_json,
    writer_of,
)
from thresher.losses import LOSSES
from thresher.model import name_tensors
from thresher.model.evidence import MORE_TENSORS, Evidence
from thresher.model.evidence import TENSORS as EVIDENCE
from thresher.model.frontier import Place
from thresher.model.model import Model, Progress
from thresher.model.name_arrays import NameArrays
from thresher.model.reading_options import checked_reading
from thresher.model.state import LearnerState
from thresher.model.tensor_file import TensorFile, TensorFileError, parts, raw

FORMAT, WITHOUT_STATE = 3, 2
_KEY = "thresher"  # the only metadata entry: several would be written in random order
_LEARNER = "learner_"  # begins the names of tensors of the learner's state
_STATE_TYPES = (np.uint8, np.int64, np.uint64)
_TENSORS = {
    "indptr": np.int64,
    "indices": np.uint64,
    "weights": np.float64,
    "intercept": np.float64,
    "history": np.float64,
}
# Types of labels: strings of up to 99,999 letters, integers, floats, booleans, and objects.
_CLASSES = re.compile(r"[<>]U\d{1,5}|[<>|][iu][1248]|[<>]f[248]|\|b1|\|O")
# All strings of an array take as much memory as the longest one: a small file could ask for much.
# The first limit is for a type as wide as the longest label, the others are for wider types.
_LONG_CLASS_BYTES, _CLASS_BYTES, _BYTES_PER_LETTER = 1 << 30, 1 << 26, 256


def write(model: Model, path: str | PathLike[str], state: bool = False) -> None:
    """Write the model atomically: to a temporary file, which then gets the name.

    `state`: with the learner's state.
    """
    learner = _state_tensors(model) if state else {}
    tensors = {
        "indptr": model.indptr,
        "indices": model.indices,
        "weights": model.weights,
        "intercept": model.intercept,
        "history": np.array([_row(record) for record in model.history]).reshape(-1, 5),
    }
    tensors = {name: np.ascontiguousarray(tensors[name], kind) for name, kind in _TENSORS.items()}
    if model.names is not None:
        known = model.names
        arrays = known if isinstance(known, NameArrays) else NameArrays.of(known)
        tensors |= {"named": arrays.named, "name_ends": arrays.ends, "name_text": arrays.text}
    if model.evidence is not None:
        tensors |= model.evidence.tensors()
    about = {
        "format": FORMAT if state else WITHOUT_STATE,
        "version": __version__,
        "n_features": model.n_features,
        "loss": model.loss,
        "classes": None if model.classes is None else model.classes.tolist(),
        "classes_dtype": None if model.classes is None else model.classes.dtype.str,
        "parameters": writable(model.parameters),
    }
    if model.certificates:
        about["certificates"] = [certificate.to_dict() for certificate in model.certificates]
    if model.frontier is not None:
        about["frontier"] = model.frontier.to_dict()
    if state:
        size = sum(array.nbytes for array in learner.values())
        about["learner"] = {"bytes": size, "checksum": _digest(learner, sorted(learner))}
    about["checksum"] = _checksum(tensors, about)
    with written_whole(path) as file:
        for part in parts(tensors | learner, {_KEY: json.dumps(about, sort_keys=True)}):
            file.write(part)


def _state_tensors(model: Model) -> dict[str, NDArray[Any]]:
    if model.learner is None:
        raise ParameterError(
            "the model has no state of a learner to save; models of estimators that learn row by "
            "row have one, and files that were saved with state=True",
            parameter="state",
            value=True,
        )
    return {_LEARNER + name: array for name, array in model.learner.tensors().items()}


class StateInFile(LearnerState):
    """The learner's state in the file of a model. It is read when it is asked for.

    Parameters
    ----------
    path : str
    bytes : int
        Its size.
    checksum : str
    version : str
        The version of Thresher that wrote it.
    """

    def __init__(self, path: str, bytes: int, checksum: str, version: str) -> None:
        self.path, self.bytes, self.checksum, self.version = path, bytes, checksum, version

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Read and verify the arrays."""
        try:
            with TensorFile(self.path) as file:
                names = sorted(name for name in file.places if name.startswith(_LEARNER))
                found = {name: file.array(name) for name in names}
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{self.path}: cannot be read again ({error})") from error
        if _digest(found, names) != self.checksum:
            raise ModelFileError(
                f"{self.path}: the learner's state does not match its checksum: it is damaged, or "
                f"the file has changed since the model was loaded"
            )
        return {name.removeprefix(_LEARNER): array for name, array in found.items()}


def read(path: str | PathLike[str]) -> Model:
    """Read and verify a model."""
    path = os.fspath(path)
    try:
        tensors, about = _parts(path)
        if about.pop("checksum", None) != _checksum(tensors, about):
            raise ModelFileError(f"{path}: damaged: the contents do not match their checksum")
        _check(tensors, about)
        return _model(tensors, about, path)
    except ModelFileError:
        raise
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error})") from error
    except TensorFileError as error:
        raise ModelFileError(f"{path}: not a model, or cut short ({error})") from error
    except RecursionError as error:
        raise ModelFileError(f"{path}: damaged: its description cannot be read") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path}: damaged: {error}") from error


def _parts(path: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    with TensorFile(path) as file:
        text = file.metadata.get(_KEY)
        if text is None:
            raise ModelFileError(f"{path}: a safetensors file, but not a Thresher model")
        try:
            about = from_json(text)
        except RepeatedEntryError:
            raise
        except ValueError as error:  # not JSON, or a number of thousands of digits
            raise ModelFileError(f"{path}: damaged: its description cannot be read") from error
        if not isinstance(about, dict):
            raise ModelFileError(f"{path}: damaged: its description cannot be read")
        check_format(path, about, FORMAT, ModelFileError)
        learner = {name for name in file.places if name.startswith(_LEARNER)}
        _check_state(file, learner, about)
        names = set(file.places) - learner
        rest = names - MORE_TENSORS if set(EVIDENCE) <= names else names
        known = [{*_TENSORS, *a, *b} for a in ((), name_tensors.TENSORS) for b in ((), EVIDENCE)]
        if rest not in known:
            raise ModelFileError(f"{path}: damaged: tensors of a model are missing")
        return {name: file.array(name) for name in sorted(names)}, about


def _check_state(file: TensorFile, names: Iterable[str], about: Mapping[str, Any]) -> None:
    """Raise ValueError if the learner's state is not described; only its header is read."""
    places = [file.places[name] for name in names]
    if any(place.kind not in _STATE_TYPES or len(place.shape) != 1 for place in places):
        raise ValueError("the learner's state has a wrong type or shape")
    size = sum(place.nbytes for place in places)
    kept = about.get("learner")
    if kept is None and not places:
        return
    if not isinstance(kept, dict) or set(kept) != {"bytes", "checksum"} or kept["bytes"] != size:
        raise ValueError("the learner's state does not match its description")


def _check(tensors: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Raise ValueError if a file with a correct checksum was not written by `write`."""
    for name, kind in _TENSORS.items():
        if tensors[name].dtype != kind or tensors[name].ndim != (2 if name == "history" else 1):
            raise ValueError(f"{name} has a wrong type or shape")
    outputs, history = len(tensors["intercept"]), tensors["history"]
    if len(tensors["indptr"]) != outputs + 1 or outputs == 0 or history.shape[1] != 5:
        raise ValueError("the sizes of its tensors do not match")
    if not np.isfinite(history[:, 0]).all() or np.isinf(history[:, 2]).any():
        raise ValueError("its history has counts that are not finite")
    if not _is_count(about["n_features"], 2**64 + 1):
        raise ValueError(f"its width is {about['n_features']!r}")
    _check_weights(tensors, about["n_features"])
    if about["loss"] not in LOSSES:
        raise ValueError(f"its loss is {about['loss']!r}")
    parameters = about["parameters"]
    if not isinstance(parameters, dict) or writable(parameters) != parameters:
        raise ValueError("its parameters cannot be read")
    if not isinstance(parameters.get("quantile"), int | float | None):
        raise ValueError("its quantile is not a number")


def _check_weights(tensors: Mapping[str, NDArray[Any]], n_features: int) -> None:
    indptr, indices, count = tensors["indptr"], tensors["indices"], len(tensors["weights"])
    if (
        indptr[0] != 0
        or indptr[-1] != count
        or len(indices) != count
        or (np.diff(indptr) < 0).any()
    ):
        raise ValueError("the sizes of its weights do not match")
    if count and int(indices.max()) >= n_features:
        raise ValueError("a feature number is too large")
    rises = indices[1:] > indices[:-1]
    starts = indptr[(indptr > 0) & (indptr < count)]
    rises[starts - 1] = True  # the start of the next output
    if not rises.all():
        raise ValueError("its feature numbers are not increasing")
    if not (np.isfinite(tensors["weights"]).all() and np.isfinite(tensors["intercept"]).all()):
        raise ValueError("a weight is not finite")


def _classes_of(about: Mapping[str, Any], outputs: int) -> NDArray[Any] | None:
    """Return the classes; raise ValueError if `write` would not have written them."""
    classes, kind = about["classes"], about["classes_dtype"]
    if classes is None:
        if outputs != 1:
            raise ValueError(f"it has {outputs} outputs but no classes")
        return None
    if not isinstance(classes, list) or not isinstance(kind, str) or not _CLASSES.fullmatch(kind):
        raise ValueError("its classes cannot be read")
    if not all(isinstance(label, str | int | float) for label in classes):
        raise ValueError("its classes are neither numbers nor strings")
    several = outputs > 1 or about["parameters"].get("multilabel")
    if len(classes) not in ((outputs,) if several else (1, 2)):  # 1: no other class was seen yet
        raise ValueError(f"it has {len(classes)} classes and {outputs} outputs")
    lengths = [len(str(one)) for one in classes]
    width, written = np.dtype(kind).itemsize, sum(lengths)
    needed = kind[1] == "U" and width == 4 * max(lengths, default=0)
    size = width * len(classes)
    if size > (_LONG_CLASS_BYTES if needed else max(_CLASS_BYTES, _BYTES_PER_LETTER * written)):
        raise ValueError(f"its classes would take {size:,} bytes, for {written:,} letters")
    with np.errstate(over="ignore"):
        found = np.array(classes, np.dtype(kind))
    known = found.tolist()
    if any(label != label for label in known):
        raise ValueError("a class is not a number (NaN)")
    if len(set(known)) < len(known):
        raise ValueError("a class occurs twice")
    if known != classes:
        raise ValueError(f"its classes are not of their type {kind}")
    return found


def _is_count(value: Any, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < end


def _model(tensors: Mapping[str, NDArray[Any]], about: Mapping[str, Any], path: str) -> Model:
    kept = about.get("learner")
    parameters = checked_reading(about["parameters"])
    return Model(
        indptr=tensors["indptr"],
        indices=tensors["indices"],
        weights=tensors["weights"],
        intercept=tensors["intercept"],
        n_features=about["n_features"],
        classes=_classes_of(about, len(tensors["intercept"])),
        loss=about["loss"],
        parameters=parameters,
        history=[
            Progress(
                int(e),
                loss,
                None if math.isnan(n) else int(n),
                rate,
                math.nan,
                None if math.isnan(v) else v,
            )
            for e, loss, n, rate, v in tensors["history"].tolist()
        ],
        names=_names(tensors) if about["format"] > 1 else _early_names(about["names"]),
        certificates=tuple(map(Certificate.from_dict, about.get("certificates", ()))),
        evidence=(
            Evidence.from_tensors(tensors, len(tensors["intercept"]), about["n_features"])
            if set(EVIDENCE) <= set(tensors)
            else None
        ),
        frontier=Place.from_dict(about["frontier"]) if "frontier" in about else None,
        learner=kept and StateInFile(os.path.abspath(path), **kept, version=writer_of(about)),
    )


def _names(tensors: Mapping[str, NDArray[Any]]) -> dict[int, str] | None:
    if not set(name_tensors.TENSORS) <= set(tensors):
        return None
    found = name_tensors.from_tensors(tensors)
    return {key: name.decode("utf-8", "surrogatepass") for key, name in found.items()}


def _early_names(pairs: Any) -> dict[int, str] | None:
    """Return the names from a file of format 1."""
    if pairs is None:
        return None
    found = {int(key): str(name) for key, name in pairs}
    if len(found) < len(pairs):
        raise ValueError("a feature has two names")
    return found


def _row(record: Progress) -> tuple[float, ...]:
    nonzeros, valid = (
        math.nan if value is None else float(value)
        for value in (record.nonzeros, record.valid_loss)
    )
    return (record.examples, record.loss, nonzeros, record.rate, valid)


def _checksum(tensors: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> str:
    rest = sorted(name for name in set(tensors) - set(_TENSORS) if not name.startswith(_LEARNER))
    return _digest(tensors, [*_TENSORS, *rest], json.dumps(about, sort_keys=True))


def _digest(tensors: Mapping[str, NDArray[Any]], names: Iterable[str], text: str = "") -> str:
    digest = hashlib.sha256(text.encode())
    for name in names:
        digest.update(f"{name} {tensors[name].dtype.str} {tensors[name].shape}".encode())
        digest.update(raw(tensors[name]))
    return digest.hexdigest()


def writable(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that JSON can hold; infinity as text."""
    kept: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            kept[name] = str(value)
        elif value is None or isinstance(value, bool | int | float | str):
            kept[name] = value
        elif isinstance(value, dict):  # class_weight
            kept[name] = {str(key): float(weight) for key, weight in value.items()}
    return kept
