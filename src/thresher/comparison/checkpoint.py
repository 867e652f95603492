"""The checkpoint of a comparison: a JSON file with all finished work."""

from __future__ import annotations

import json
import os
import warnings
from base64 import b64decode, b64encode
from collections.abc import Mapping
from os import PathLike
from typing import Any
from zlib import compress, decompress
from zlib import error as ZlibError

import numpy as np
from numpy.typing import NDArray

from thresher._version import __version__
from thresher.atomic import check_place, clear_leftovers, write_whole
from thresher.comparison.result import row_of
from thresher.errors import DataError, ParameterError, setting
from thresher.file_format import check_format, writer_of
from thresher.training.bits import BITS, RULE_BITS, check_bits
from thresher.training.regular_checkpoints import not_written

FORMAT = 1


class ComparisonCheckpoint:
    """The results so far, by rule; written after each search, model and rule.

    Parameters
    ----------
    path : path or None
        None: nothing is written.
    identity : mapping
        Data, split and settings. They must be the same when the comparison is continued.

    Attributes
    ----------
    rules : dict
        By rule. For an unfinished rule: "search", the result of cross-validation; "orders", the
        measures and supports of the models so far. For a finished rule: only "row", its result.
    """

    def __init__(self, path: str | PathLike[str] | None, identity: Mapping[str, Any]) -> None:
        self.path = path
        self.identity: dict[str, Any] = json.loads(json.dumps(dict(identity)))
        self.rules: dict[str, dict[str, Any]] = {}
        self._failing = False
        if path is None:
            return
        check_place(path)
        if os.path.exists(path):
            clear_leftovers(path)
            self.rules = self._read()

    def of(self, rule: str) -> dict[str, Any]:
        """Return the results of a rule so far; the caller adds to them."""
        return self.rules.setdefault(rule, {})

    def write(self) -> None:
        """Write the results so far; the file is replaced in one step.

        If it cannot be written, the first attempt warns, and the later ones are silent until one
        succeeds.
        """
        if self.path is not None:
            kept = {
                "format": FORMAT,
                "version": __version__,
                "bits": _bits(),
                "identity": self.identity,
                "rules": self.rules,
            }
            content = json.dumps(kept, allow_nan=False).encode()
            try:
                write_whole(self.path, content)
                self._failing = False
            except OSError as error:  # for example a full disk: the next attempt may succeed
                if not self._failing:
                    warnings.warn(not_written(error), stacklevel=2)
                self._failing = True

    def _read(self) -> dict[str, dict[str, Any]]:
        assert self.path is not None
        name = os.fspath(self.path)
        try:
            with open(name, "rb") as file:
                found = json.load(file)
            check_format(name, found, FORMAT, DataError)
            kept, identity = found["rules"], found["identity"]
            known = isinstance(identity, dict) and isinstance(found.get("bits", {}), dict)
            for entry in kept.values():
                _check(entry)
        except DataError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError):
            known = False
        if not known:
            raise DataError(f"{name}: not a checkpoint of a comparison")
        early = identity.pop("version", None)  # version 0.1.0 wrote its version here
        check_bits(found.get("bits"), _bits(), name, early or writer_of(found))
        for what in dict.fromkeys((*self.identity, *identity)):
            before, now = identity.get(what), self.identity.get(what)
            if before != now:
                raise ParameterError(
                    (setting("checkpoint"), f" {name} belongs to another comparison: its {what} is "
                     f"{_short(before)}, but here it is {_short(now)}"),
                    parameter="checkpoint",
                    value=name,
                    hint="remove the file, or give another file",
                )  # fmt: skip
        rules: dict[str, dict[str, Any]] = kept
        return rules


def _bits() -> dict[str, int]:
    """Return the behaviours that comparisons depend on."""
    return {name: number for name, number in BITS.items() if name != "weights"} | RULE_BITS


def _check(entry: Mapping[str, Any]) -> None:
    """Raise an error if the results of a rule are not as `ComparisonRun` writes them."""
    if "row" in entry:
        row_of(entry["row"])
        return
    if "search" in entry:
        dict(entry["search"]["chosen"])
        dict(entry["search"]["grid"])
        list(entry["search"]["notes"])
        float(entry["search"]["cv_error"])
        float(entry["search"]["cv_standard_error"])
    for order in entry.get("orders", ()):
        if "search" not in entry:
            raise KeyError("search")
        support_from_text(order["support"], 1)
        list(order["warnings"])
        numbers = {name for name in order if name not in ("support", "warnings")}
        if not numbers >= {"nonzeros", "seconds"} or order.keys() != entry["orders"][0].keys():
            raise KeyError("measures")
        for name in numbers:
            float(order[name] or 0.0)


def _short(value: Any) -> str:
    text = repr(value)
    return f"{text[:13]}...'" if isinstance(value, str) and len(value) == 64 else text


def support_to_text(support: NDArray[np.bool_]) -> str:
    """Return a support as text, compressed.

    Parameters
    ----------
    support : boolean array

    Examples
    --------
    >>> import numpy as np
    >>> text = support_to_text(np.array([True, False, True]))
    >>> support_from_text(text, 3).tolist()
    [True, False, True]
    """
    return b64encode(compress(np.packbits(support).tobytes())).decode()


def support_from_text(text: str, columns: int) -> NDArray[np.bool_]:
    """Return the support that `support_to_text` wrote.

    Parameters
    ----------
    text : str
    columns : int
    """
    try:
        bits = np.frombuffer(decompress(b64decode(text)), np.uint8)
    except ZlibError as error:
        raise ValueError(f"not a support: {error}") from None
    return np.unpackbits(bits, count=columns).astype(bool)
