"""What changed from one model to another: features that came, went, or changed sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ParameterError
from thresher.printable import printable

if TYPE_CHECKING:
    from thresher.model.model import Model

__all__ = ["Change", "ModelChanges"]

_SHOWN = 5  # features of each kind in the text


class Change(NamedTuple):
    """The weight of a feature in two models.

    Attributes
    ----------
    name : str or int
        Its name, or its number if it has no name.
    before, after : float
        Its weights; 0.0 if a model has none.
    label : object
        The class, if the models have one output for each class.
    """

    name: str | int
    before: float
    after: float
    label: Any = None

    @property
    def difference(self) -> float:
        """The weight after minus the weight before."""
        return self.after - self.before


@dataclass(frozen=True, repr=False)
class ModelChanges:
    """What changed from one model to another.

    Attributes
    ----------
    before, after : Model
    by : {"name", "number"}
        How features of the two models were matched.
    came, went, turned, moved : tuple of Change
        Features with a weight in the second model only, in the first only, with weights of
        different sign, and with different weights of the same sign; the largest difference first.
    unchanged : int
        Number of weights that are equal.
    new_labels, old_labels : tuple
        Classes that only one of the models has; their weights are not compared.
    """

    before: Model
    after: Model
    by: str
    came: tuple[Change, ...]
    went: tuple[Change, ...]
    turned: tuple[Change, ...]
    moved: tuple[Change, ...]
    unchanged: int
    new_labels: tuple[Any, ...] = ()
    old_labels: tuple[Any, ...] = ()

    @classmethod
    def between(cls, before: Model, after: Model) -> ModelChanges:
        """Compare the weights of two models.

        Parameters
        ----------
        before, after : Model
        """
        _check_task(before, after)
        by_name = _all_named(before) and _all_named(after)
        if not by_name and not _same_numbers(before, after):
            raise ParameterError(
                f"the models have {before.n_features:,} and {after.n_features:,} features, and not "
                "all of them have names: it is not known which are the same",
                hint="name them with model.named(names)",
            )
        found: dict[str, list[Change]] = {name: [] for name in ("came", "went", "turned", "moved")}
        unchanged = 0
        old, new = _outputs(before), _outputs(after)
        for label, k in new.items():
            if label in old:
                parts, same = _changes(before, after, old[label], k, label, by_name)
                unchanged += same
                for name, changes in parts.items():
                    found[name] += changes
        sorted_parts = {
            name: tuple(sorted(changes, key=lambda one: -abs(one.difference)))
            for name, changes in found.items()
        }
        return cls(
            before,
            after,
            "name" if by_name else "number",
            unchanged=unchanged,
            new_labels=tuple(label for label in new if label not in old),
            old_labels=tuple(label for label in old if label not in new),
            **sorted_parts,
        )

    def numbered(self) -> ModelChanges:
        """Return the same with numbers of features as in the files, which may count from 1."""
        first = self.after.parameters.get("first")
        if not isinstance(first, int) or not first:
            return self
        shifted: dict[str, Any] = {
            kind: tuple(
                one._replace(name=one.name + first) if isinstance(one.name, int) else one
                for one in getattr(self, kind)
            )
            for kind in _KINDS
        }
        return replace(self, **shifted)

    def to_dict(self) -> dict[str, Any]:
        """Return all changes in types of JSON.

        Returns
        -------
        dict
            Keys ``by``, ``came``, ``went``, ``turned``, ``moved`` (lists of dicts with ``name``,
            ``before``, ``after``, ``label``), ``unchanged``, ``new_labels``, ``old_labels``.
        """
        lists = {name: [one._asdict() for one in getattr(self, name)] for name in _KINDS}
        return {
            "by": self.by,
            **lists,
            "unchanged": self.unchanged,
            "new_labels": list(self.new_labels),
            "old_labels": list(self.old_labels),
        }

    def report(
        self, path: str | PathLike[str], titles: Sequence[str] = ("before", "after")
    ) -> None:
        """Write a page about the changes: one HTML file, which needs no network.

        Parameters
        ----------
        path : path
            The file; it is written atomically.
        titles : pair of str
            Names of the two models.
        """
        from thresher.report.changes_page import write

        write(self.numbered(), path, titles)

    def __repr__(self) -> str:
        """Return the number of changes of each kind, and the largest of them."""
        lines = [f"features matched by {self.by}; {self.unchanged:,} weights are equal"]
        for kind, what in _KINDS.items():
            changes = getattr(self, kind)
            lines.append(f"{len(changes):,} {what}")
            for one in changes[:_SHOWN]:
                of = "" if one.label is None else f" ({printable(one.label)})"
                name = printable(one.name)
                lines.append(f"  {name}{of}  {one.before:+.6g} -> {one.after:+.6g}")
            if len(changes) > _SHOWN:
                lines.append(f"  ... {len(changes) - _SHOWN:,} more")
        for what, labels in (("only now", self.new_labels), ("only before", self.old_labels)):
            if labels:
                lines.append(f"classes {what}: {', '.join(map(printable, labels))}")
        return "\n".join(lines)


_KINDS = {
    "came": "came (no weight before)",
    "went": "went (no weight now)",
    "turned": "changed sign",
    "moved": "changed weight",
}


def _check_task(before: Model, after: Model) -> None:
    """Raise ParameterError if the weights of two models do not mean the same."""
    if (before.classes is None) != (after.classes is None):
        raise ParameterError("one of the models predicts classes and the other one numbers")
    if before.classes is None or after.classes is None:
        return
    if before.multilabel != after.multilabel:
        raise ParameterError("only one of the models is for rows with any number of labels")
    old, new = before.classes.tolist(), after.classes.tolist()
    signed = [len(model.intercept) == 1 and not model.multilabel for model in (before, after)]
    if any(signed) and old != new:
        raise ParameterError(
            f"the classes of the models are {old} and {new}; with two classes they must be the "
            "same, in the same order"
        )


def _outputs(model: Model) -> dict[Any, int]:
    """Return the output of each class; one output without a class has the label None."""
    if model.classes is None or (len(model.intercept) == 1 and not model.multilabel):
        return {None: 0}
    return {label: k for k, label in enumerate(model.classes.tolist())}


def _all_named(model: Model) -> bool:
    """Tell whether all weights have names, and no two features have the same."""
    if model.names is None:
        return False
    kept = np.unique(model.indices).tolist()
    names = {model.names.get(index) for index in kept}
    return None not in names and len(names) == len(kept)


def _same_numbers(before: Model, after: Model) -> bool:
    """Tell whether a number means the same feature in both models.

    Numbers in files mean the same, also if the largest number of a file is another one.
    """
    if before.n_features == after.n_features:
        return True
    old, new = before.parameters, after.parameters
    from_files = isinstance(old.get("first"), int) and old.get("first") == new.get("first")
    return from_files and old.get("bits") == new.get("bits")


def _weights(model: Model, output: int) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    begin, end = model.indptr[output], model.indptr[output + 1]
    return model.indices[begin:end], model.weights[begin:end]


def _changes(
    before: Model, after: Model, old: int, new: int, label: Any, by_name: bool
) -> tuple[dict[str, list[Change]], int]:
    """Return the changes of an output by kind, and the number of equal weights."""
    names: list[str | int]
    if by_name:
        pairs = [
            {str(model.name(key)): weight for key, weight in zip(keys.tolist(), found, strict=True)}
            for model, (keys, found) in (
                (before, _weights(before, old)),
                (after, _weights(after, new)),
            )
        ]
        names = sorted({*pairs[0], *pairs[1]})
        weights = [np.array([found.get(str(name), 0.0) for name in names]) for found in pairs]
    else:
        entries = (_weights(before, old), _weights(after, new))
        keys = np.union1d(entries[0][0], entries[1][0])
        names = [after.name(key) for key in keys.tolist()]
        weights = []
        for own, found in entries:
            weights.append(np.zeros(len(keys)))
            weights[-1][np.searchsorted(keys, own)] = found
    one, two = weights
    turned = (np.sign(one) * np.sign(two)) < 0
    kinds = {
        "came": (one == 0) & (two != 0),
        "went": (one != 0) & (two == 0),
        "turned": turned,
        "moved": (one != two) & (one != 0) & (two != 0) & ~turned,
    }
    found_changes = {
        kind: [
            Change(names[i], float(one[i]), float(two[i]), label)
            for i in np.flatnonzero(which).tolist()
        ]
        for kind, which in kinds.items()
    }
    return found_changes, int((one == two).sum())
