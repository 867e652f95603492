"""What `FeatureDiscovery` makes of its arguments: the labels, and the plan of the readings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from thresher.data.arrays import refuse_texts
from thresher.data.labels import Labels, ManyClasses, NumericLabels, TwoClasses
from thresher.data.matrix_source import MatrixSource
from thresher.data.parts import Part
from thresher.data.shuffled import ShuffledSource
from thresher.discovery.feature_groups import groups_of
from thresher.discovery.plan import DiscoveryPlan
from thresher.errors import DataError, ParameterError, ReadOnceError
from thresher.sparse_checks import refuse_malformed
from thresher.training.seeds import seed_of

if TYPE_CHECKING:
    from thresher.data.source import Source
    from thresher.discovery.feature_discovery import FeatureDiscovery

_DENSE = 1 << 30  # bytes of evidence in a dense store; for more, a hashed store
_BYTES = 448  # of a feature, about
_SMALL = 1 << 28  # bytes of files that are shuffled in memory
_FEW_CLASSES = 20  # labels that are whole numbers are classes if there are at most this many
_TWO: tuple[set[Any], ...] = ({-1, 1}, {0, 1}, {1}, {0}, {-1})


def validated(discovery: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Check X as `validate_data` of scikit-learn does; texts have their own error.

    Parameters
    ----------
    discovery : FeatureDiscovery
    X, *y
        Rows, and their labels to fit.
    **options
        Those of `validate_data`.
    """
    refuse_texts(X)
    refuse_malformed(X)
    return validate_data(discovery, X, *y, **options)


def labels_of_rows(discovery: FeatureDiscovery, y: NDArray[Any], classes: Any) -> Labels:
    """Return what converts the labels of rows in memory to targets.

    Parameters
    ----------
    discovery : FeatureDiscovery
    y : array of shape (rows,)
    classes : array or None
        All labels, if they are known.
    """
    task = _one_of(discovery, "task", ("auto", "classification", "regression"))
    if task == "auto":
        kind = type_of_target(y, input_name="y")
        if kind not in ("binary", "multiclass", "continuous"):
            raise ParameterError(
                f"Unknown label type: {kind}; y must have one label or number for each row",
                owner=_owner(discovery),
            )
        many = y.dtype.kind in "iuf" and len(np.unique(y)) > _FEW_CLASSES
        task = "regression" if kind == "continuous" or many else "classification"
    if task == "regression":
        return NumericLabels()
    check_classification_targets(y)
    return ManyClasses(y if classes is None else classes, 0.0, tidied=False)


def groups_of_rows(discovery: FeatureDiscovery, groups: Any, rows: int) -> NDArray[np.int64]:
    """Return the group of each row as a number; raise ParameterError if folds cannot keep them.

    Parameters
    ----------
    discovery : FeatureDiscovery
    groups : array of shape (rows,)
    rows : int
        Number of rows.
    """
    owner = _owner(discovery)
    if discovery.form == "stream":
        raise ParameterError(
            "groups= is for folds, and form='stream' has none; use form='crossfit'",
            owner=owner,
            parameter="groups",
        )
    check_numbers(discovery)
    labels, of_rows = np.unique(np.asarray(groups), return_inverse=True)
    if of_rows.shape != (rows,):
        raise ParameterError("groups must have one entry for each row", owner=owner)
    folds = discovery.folds
    if len(labels) < folds:
        raise ParameterError(
            f"groups: at least {folds} different groups are needed for {folds} folds",
            owner=owner,
            parameter="groups",
        )
    return of_rows.astype(np.int64)


def labels_of_source(discovery: FeatureDiscovery, source: Source, classes: Any) -> Labels:
    """Return what converts the labels of a source to targets.

    The first block decides whether it is a classification. Unless it has both labels -1 and 1, or
    both 0 and 1, the source is read to find all classes.

    Parameters
    ----------
    discovery : FeatureDiscovery
    source : Source
    classes : array or None
        All labels, if they are known.
    """
    task = _one_of(discovery, "task", ("auto", "classification", "regression"))
    if classes is not None and task != "regression":
        return ManyClasses(classes, 0.0)
    if task == "regression":
        return NumericLabels()
    if not source.rereadable:
        numbers = "" if task == "classification" else ", or task='regression' for numbers"
        return TwoClasses(0.0, f"give fit classes= for other labels{numbers}")
    first = next((block.label_sets()[1] for block in source.blocks() if block.rows), None)
    if first is None:
        raise DataError(f"{source}: no rows to learn from")
    found = np.unique(first)
    words = found.dtype.kind not in "fiub"
    if task == "auto" and not words and not _few(found):
        return NumericLabels()
    if len(found) == 1 or set(found.tolist()) not in _TWO:  # one label: the rows may be sorted
        found = source.labels()
        if task == "auto" and not words and not _few(found):  # later blocks differ from the first
            return NumericLabels()
    return TwoClasses(0.0) if set(found.tolist()) in _TWO else ManyClasses(found, 0.0)


def _few(labels: NDArray[Any]) -> bool:
    """Tell whether labels that are numbers are classes: a few whole numbers."""
    return bool((labels == np.round(labels)).all()) and len(labels) <= _FEW_CLASSES


def plan_of(
    discovery: FeatureDiscovery,
    source: Source | MatrixSource,
    labels: Labels,
    form: str | None = None,
) -> DiscoveryPlan:
    """Check all parameters; return what decides the evidence.

    Parameters
    ----------
    discovery : FeatureDiscovery
    source : Source or MatrixSource
    labels : Labels
    form : str, optional
        By default the parameter `form`.
    """
    check_numbers(discovery)
    given = form or _one_of(discovery, "form", ("auto", "crossfit", "stream", "joint"))
    if given in ("crossfit", "joint") and not source.rereadable:
        raise ReadOnceError(
            f"{source} can be read only once, and {given} needs two readings",
            source=str(source),
            owner=_owner(discovery),
            parameter="form",
            value=given,
            hint="form='stream' needs one reading",
        )
    if given == "auto":
        given = "crossfit" if source.rereadable else "stream"
    width = 0
    if isinstance(source, MatrixSource):
        width = source.width()
    elif source.bits is not None:
        width = 1 << source.bits
    _check_feature_groups(discovery, source, width)
    models = 1 if given == "stream" else discovery.folds
    dense = width > 0 and width * _BYTES * labels.outputs * (1 + models / 4) <= _DENSE
    return DiscoveryPlan(
        form="stream" if given == "stream" else "crossfit",
        task="regression" if labels.classes is None else "classification",
        folds=int(discovery.folds),
        redraws=int(discovery.redraws),
        dtype=_one_of(discovery, "dtype", ("float32", "float64")),
        store="dense" if dense else "hashed",
        width=width,
        seed=seed_of(discovery.random_state, _owner(discovery)),
    )


def _check_feature_groups(
    discovery: FeatureDiscovery, source: Source | MatrixSource, width: int
) -> None:
    groups = discovery.feature_groups
    if groups is None:
        return
    if discovery.form == "joint":
        raise ParameterError(
            "form='joint' drops single features, and feature_groups= selects whole groups: give "
            "one of them",
            owner=_owner(discovery),
            parameter="feature_groups",
        )
    if isinstance(groups, str):
        if groups != "namespace":
            raise ParameterError(
                owner=_owner(discovery), parameter="feature_groups", value=groups,
                allowed="an array with the group of each column, or 'namespace'",
            )  # fmt: skip
        if not source.named:
            raise ParameterError(
                "feature_groups='namespace' needs a source whose features have names",
                owner=_owner(discovery),
                parameter="feature_groups",
            )
    elif width:
        groups_of(groups, width)
    if discovery.redraws < 3:  # a redraw is compared with the sd of the others
        raise ParameterError(
            owner=_owner(discovery), parameter="redraws", value=discovery.redraws,
            allowed="at least 3 with feature_groups",
        )  # fmt: skip


def shuffled_source(
    discovery: FeatureDiscovery, source: Source | MatrixSource, plan: DiscoveryPlan
) -> Source | MatrixSource:
    """Return the source, or its rows in random order in memory; see the parameter `shuffle`.

    Parameters
    ----------
    discovery : FeatureDiscovery
    source : Source or MatrixSource
    plan : DiscoveryPlan
    """
    given = discovery.shuffle
    if given not in (True, False, "auto"):
        raise ParameterError(
            owner=_owner(discovery), parameter="shuffle", value=given, allowed="True, False, 'auto'"
        )
    if isinstance(source, MatrixSource | ShuffledSource) or given is False:
        return source
    if given == "auto" and (plan.form == "stream" or not _is_small(source)):
        return source
    if not source.rereadable:
        raise ReadOnceError(
            f"{source} can be read only once, and cannot be shuffled",
            source=str(source),
            owner=_owner(discovery),
            parameter="shuffle",
            value=given,
        )
    # The order has a fixed seed: a resumed run without a random_state has the same one.
    shuffled = ShuffledSource(source, 0)
    shuffled.stops = source.stops
    return shuffled


def _is_small(source: Source) -> bool:
    """Tell whether the rows of a source may be held in memory."""
    sizes = [(part.size, _is_packed(part)) for part in source.parts]
    if any(size is None for size, _ in sizes):
        return False
    return sum((size or 0) * (8 if packed else 1) for size, packed in sizes) <= _SMALL


def _is_packed(part: Part) -> bool:
    """Tell whether a file is compressed; a Parquet file usually is."""
    from thresher.data.table_part import TablePart

    if isinstance(part, TablePart) and part.table.format == "parquet":
        return True
    return str(part.name).endswith((".gz", ".bz2", ".xz", ".zst"))


def _owner(discovery: FeatureDiscovery) -> str:
    return type(discovery).__name__


def _one_of(discovery: FeatureDiscovery, name: str, allowed: tuple[str, ...]) -> str:
    value = getattr(discovery, name)
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(
            owner=_owner(discovery), parameter=name, value=value, allowed=", ".join(allowed)
        )
    return value


def check_numbers(discovery: FeatureDiscovery) -> None:
    """Raise ParameterError if a parameter that is a number is out of its range.

    Parameters
    ----------
    discovery : FeatureDiscovery
    """

    def refuse(name: str, allowed: str) -> None:
        value = getattr(discovery, name)
        raise ParameterError(owner=_owner(discovery), parameter=name, value=value, allowed=allowed)

    if not _is_number(discovery.fdr) or not 0 < discovery.fdr <= 1:
        refuse("fdr", "a number above 0 and at most 1")
    most = discovery.expected_false
    if most is not None and (not _is_number(most) or not most > 0):
        refuse("expected_false", "a number above 0, or None")
    for name, least, largest in (("folds", 2, 64), ("redraws", 2, 1000)):
        value = getattr(discovery, name)
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not least <= value <= largest:
            refuse(name, f"a whole number from {least} to {largest}")
    limit = discovery.memory_limit
    if limit is not None and (not _is_number(limit) or not limit > 0):
        refuse("memory_limit", "a number of bytes above 0, or None")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
