"""Default gravities of a search: from almost all weights nonzero to almost none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import is_sparse
from thresher.data.matrix_source import MatrixBlock, MatrixSource
from thresher.data.source import Source
from thresher.data.targets import Targets
from thresher.errors import DataError, ParameterError
from thresher.losses import LOSSES
from thresher.rules import RULES, core_args
from thresher.training.class_weights import class_factors, row_weights
from thresher.training.source_labels import labels_for
from thresher.training.target_scale import TargetScale

SIZES = ("target_nnz", "n_nonzero")  # parameters that limit the number of weights
COUNT = 15  # lanes that share one cache line in the core
_LEAST = 1e-4  # smallest gravity, as a share of the largest
_COPIES = 4  # the gradients are in memory at most this many times while rows are added


def gravity_name(estimator: Any, wanted: str | None = None) -> str:
    """Return the parameter of an estimator that controls its sparsity.

    Parameters
    ----------
    estimator : estimator
    wanted : str, optional
        One of these parameters; by default the penalty, or the number of weights if there is none.

    Examples
    --------
    >>> from thresher import FTRLClassifier, StabilizedClassifier
    >>> gravity_name(FTRLClassifier()), gravity_name(StabilizedClassifier())
    ('l1', 'target_nnz')
    """
    spec, name = RULES.get(estimator.rule), type(estimator).__name__
    known = () if spec is None else (spec.penalty, *(n for n in SIZES if n in spec.parameters))
    able = [parameter for parameter in known if parameter is not None]
    if not able:
        raise ParameterError(
            f"estimator must have a penalty or a number of weights: gravity, l1, "
            f"{' or '.join(SIZES)}; {name} has none of them"
        )
    if wanted is not None and wanted not in able:
        raise ParameterError(
            owner=name, parameter="param_name", value=wanted, allowed=f"one of {', '.join(able)}"
        )
    return wanted or able[0]


def default_sizes(source: Source | MatrixSource) -> list[int]:
    """Return increasing numbers of weights with about equal ratios: from 1 to all features.

    Parameters
    ----------
    source : Source or MatrixSource
        Can be read once more; its features are counted.
    """
    keys: NDArray[Any] = np.zeros(0, np.int64)
    for block in source.blocks():
        if not isinstance(block, MatrixBlock):
            own = np.asarray(block.native.keys)
        else:
            own = block.X.indices if is_sparse(block.X) else np.arange(block.width)
        keys = np.union1d(keys, own)
    found = np.geomspace(1, max(len(keys), 2), COUNT).round().astype(int)
    return [int(size) for size in np.unique(found)]


class GravityScale:
    """The smallest gravity that makes all weights zero: the largest mean gradient at zero weights.

    All weights are zero at the optimum of mean loss + l1 ||w||_1 if and only if l1 is at least the
    largest absolute mean gradient of any feature. Rows are added in pieces. If the gradients of
    all outputs do not fit in memory, the rows must be added several times; see `more`.

    Parameters
    ----------
    loss : str
    epsilon, quantile : float
        Parameters of the loss.
    centred : bool
        Whether there is an intercept. The gradient is then taken at the best constant; for the
        logistic and the squared loss, it is the gradient at zero minus its mean.
    limit : int
        Largest size of the gradients, in bytes.

    Attributes
    ----------
    largest : float
        The largest mean gradient.
    top : float
        The largest absolute value in the rows.
    rows : int
        Number of rows.
    weight : float
        Sum of the weights of the rows.
    unit : float
        The user's unit of gravities: `largest` is in units of standardised targets, if targets are
        standardised.

    Examples
    --------
    >>> import numpy as np
    >>> scale = GravityScale("squared", 0.0, 0.5, centred=True, limit=10**6)
    >>> X, targets = np.array([[1.0, 0.0], [0.0, 2.0]]), [np.array([1.0, 3.0])]
    >>> while scale.more(outputs=1):
    ...     scale.add(X, targets.__getitem__, None)
    >>> scale.largest
    1.0
    """

    def __init__(
        self, loss: str, epsilon: float, quantile: float, centred: bool, limit: int
    ) -> None:
        self.loss = loss, epsilon, quantile
        self.centred, self.limit = centred, limit
        self.rows, self.weight, self.top, self.largest = 0, 0.0, 0.0, 0.0
        self.unit = 1.0
        self._first = self._last = 0  # range of outputs in this reading
        self._clear()

    def _clear(self) -> None:
        self._keys = np.zeros(0, np.int64)
        self._sums = np.zeros((0, 0))  # by feature: sum of its values, then one sum per output
        self._slopes = np.zeros(0)

    def more(self, outputs: int) -> bool:
        """Begin a reading of the rows; return False if all outputs are done.

        Parameters
        ----------
        outputs : int
            Number of outputs.
        """
        if len(self._keys) and self._slopes[0]:
            self.weight = float(self._slopes[0])
            own, sums = self._sums[:, :1], self._sums[:, 1:]
            if self.centred:
                sums -= own * (self._slopes[1:] / self._slopes[0])
            np.abs(sums, out=sums)
            self.largest = max(self.largest, float(sums.max() / self._slopes[0]))
        self._first, self._last = self._last, outputs
        self._clear()
        return self._first < outputs

    def add(
        self,
        X: Any,
        targets: Callable[[int], NDArray[np.float64]],
        weights: NDArray[np.float64] | None,
    ) -> None:
        """Add rows.

        Parameters
        ----------
        X : CSR matrix or array
        targets : callable
            Takes the number of an output and returns its targets.
        weights : array or None
        """
        if is_sparse(X):
            self.add_sparse(X.data, X.indices, X.indptr, targets, weights)
            return
        keys = np.arange(X.shape[1])
        self._merge(keys, X.T @ self._gradients(X.shape[0], keys, targets, weights))
        self.top = max(self.top, float(np.abs(X).max(initial=0.0)))

    def add_sparse(
        self,
        values: NDArray[Any],
        keys: NDArray[Any],
        starts: NDArray[Any],
        targets: Callable[[int], NDArray[np.float64]],
        weights: NDArray[np.float64] | None,
    ) -> None:
        """Add sparse rows: values, their features, and where each row begins.

        Parameters
        ----------
        values, keys, starts : array
        targets : callable
            Takes the number of an output and returns its targets.
        weights : array or None
        """
        seen, columns = np.unique(keys.astype(np.int64), return_inverse=True)
        X = sp.csr_matrix((values, columns, starts), shape=(len(starts) - 1, len(seen)))
        self._merge(seen, X.T @ self._gradients(X.shape[0], seen, targets, weights))
        self.top = max(self.top, float(np.abs(values).max(initial=0.0)))

    def _gradients(
        self,
        rows: int,
        keys: NDArray[np.int64],
        targets: Callable[[int], NDArray[np.float64]],
        weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """Return an array of a column of ones and the slopes of each output at zero, weighted."""
        features = len(self._keys) + len(keys)
        room = max(1, self.limit // (_COPIES * 8 * max(rows, features, 1)) - 1)
        if self._last - self._first > room:  # the other outputs need another reading
            self._last = self._first + room
            self._sums, self._slopes = self._sums[:, : room + 1], self._slopes[: room + 1]
        slopes = np.ones((rows, 1 + self._last - self._first))
        for column, output in enumerate(range(self._first, self._last), 1):
            slopes[:, column] = _core.loss_values(*self.loss, np.zeros(rows), targets(output))[1]
        if weights is not None:
            slopes *= weights[:, None]
        self._slopes = slopes.sum(axis=0) + (self._slopes if len(self._slopes) else 0.0)
        self.rows += rows if self._first == 0 else 0
        return slopes

    def _merge(self, keys: NDArray[np.int64], sums: NDArray[np.float64]) -> None:
        if len(keys) and np.array_equal(self._keys, keys):
            self._sums = self._sums + sums
            return
        found = np.union1d(self._keys, keys)
        merged = np.zeros((len(found), sums.shape[1]))
        if len(self._keys):
            merged[np.searchsorted(found, self._keys)] = self._sums
        merged[np.searchsorted(found, keys)] += sums
        self._keys, self._sums = found, merged


def default_gravities(estimator: Any, scale: GravityScale) -> NDArray[np.float64]:
    """Return increasing gravities: from almost all weights nonzero to almost none.

    Parameters
    ----------
    estimator : estimator
    scale : GravityScale
        The scale of all rows.
    """
    rule = RULES[estimator.rule]
    top = scale.largest * rule.penalty_reach
    if rule.penalty_unit == "gradients":
        top *= scale.weight * estimator.passes
    elif rule.penalty_unit == "update":
        top = scale.top * estimator.eta0
    if not 0 < top < np.inf:
        raise DataError(
            "gravities: no feature is related to the labels, so the default gravities cannot be "
            "computed; give gravities"
        )
    return np.array([float(f"{g:.3g}") for g in np.geomspace(_LEAST * top, top, COUNT)])


def gravity_scale_of(
    estimator: Any, source: Source | MatrixSource, limit: int, classes: Any = None
) -> GravityScale:
    """Return the scale of a source; reads it several times if memory requires it.

    Raises ParameterError if the unit of the estimator's l1 does not depend on the rows.

    Parameters
    ----------
    estimator : estimator
    source : Source or MatrixSource
    limit : int
        Largest size of the gradients, in bytes.
    classes : array, optional
        All labels of a source; by default the source is read once more to find them.
    """
    params = core_args.canonical(estimator.get_params(deep=False))
    owner = type(estimator).__name__
    if params.get("threshold", "scaled") == "paper":
        raise ParameterError(
            f"{owner}: with threshold='paper' each step subtracts l1, independent of the rate, so "
            f"there are no default gravities: give gravities, or set threshold='scaled'"
        )
    loss = core_args.loss_of(estimator.rule, params)
    standardised = is_scaled(estimator)
    epsilon = core_args.epsilon_of(estimator.rule, params, standardised)
    of_loss = epsilon, float(params.get("quantile", 0.5))
    scale = GravityScale(loss, *of_loss, centred=bool(params["fit_intercept"]), limit=limit)
    if params.get("class_weight") == "balanced":
        classes = None  # then the source is read to count the rows of each class
    facts = loss, params, source, owner, classes
    labels = labels_for(estimator.rule, estimator.task, *facts)
    factors = class_factors(params.get("class_weight"), labels, owner, strict=False)
    block: Any
    targets_scale = None
    if standardised:
        targets_scale = TargetScale(LOSSES[loss].degree, bool(params["fit_intercept"]))
        for block in source.blocks():
            targets_scale.standardise(labels.targets(block)[0], block.weights)
        targets_scale.fixed = True
    while scale.more(labels.outputs):
        for block in source.blocks():
            targets = labels.targets(block)
            weights = row_weights(block, targets, factors)
            if targets_scale is not None:
                y = targets_scale.standardise(targets[0], weights).labels.ravel()
                targets = Targets.of_values(y)
            if isinstance(block, MatrixBlock):
                scale.add(block.X, targets.__getitem__, weights)
            else:
                native = block.native
                keys, starts = np.asarray(native.keys), np.asarray(native.starts)
                values = np.asarray(native.values)
                scale.add_sparse(values, keys, starts, targets.__getitem__, weights)
    if targets_scale is not None and targets_scale.sd > 0:
        scale.unit = targets_scale.unit / targets_scale.sd
    return scale


def is_scaled(estimator: Any) -> bool:
    """Tell whether targets are standardised where the penalty is computed from them."""
    given = {**estimator.get_params(deep=False), str(RULES[estimator.rule].penalty): "auto"}
    params = core_args.canonical(given)
    return core_args.standardises(estimator.rule, estimator.task, params)
