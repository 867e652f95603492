"""Pipelines in a search: points grouped by transformers, and rows transformed once per split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _check_method_params, _num_samples, indexable

from thresher.data import is_sparse
from thresher.errors import ParameterError, setting
from thresher.search.grid import GridPoint, check_estimator, combinations, point_of, points_of
from thresher.sparse_checks import refuse_malformed
from thresher.training.run_options import RunOptions

_ALONE = 64  # rows that are also transformed without the others


def is_pipeline(estimator: Any) -> bool:
    """Tell whether an estimator is a pipeline of scikit-learn."""
    return isinstance(estimator, Pipeline)


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline; any other estimator itself."""
    return estimator.steps[-1][1] if is_pipeline(estimator) else estimator


def refuse_checkpoint(estimator: Any, run: RunOptions) -> None:
    """Raise ParameterError if there is a checkpoint for a pipeline.

    Parameters
    ----------
    estimator : estimator
    run : RunOptions
    """
    if run.checkpoint is not None and is_pipeline(estimator):
        raise ParameterError(
            (setting("checkpoint"), " is not for a Pipeline: its fitted transformers cannot be "
             "kept in a file"),
            parameter="checkpoint",
            value=run.checkpoint,
        )  # fmt: skip


def refuse_pipeline(owner: str, estimator: Any) -> None:
    """Raise ParameterError if a pipeline is given together with a source."""
    if is_pipeline(estimator):
        raise ParameterError(
            f"{owner}: a Pipeline needs rows in memory; for a source, give its last step, and "
            f"options such as text= to scan"
        )


@dataclass
class PipelineGroup:
    """Points of a grid whose rows are transformed in the same way.

    Attributes
    ----------
    pipeline : Pipeline or estimator
        Not fitted, with the parameters of the group.
    points : list of GridPoint
        Points of the last step.
    """

    pipeline: Any
    points: list[GridPoint] = field(default_factory=list)

    @property
    def estimator(self) -> Any:
        """The last step."""
        return last_step(self.pipeline)


def pipeline_groups(pipeline: Any, param_grid: Any) -> list[PipelineGroup]:
    """Return the points of a grid, grouped by the parameters that are not of the last step.

    Without a pipeline, there is one group.

    Raises ParameterError if a step has no such parameter, or if a value is not allowed.

    Parameters
    ----------
    pipeline : Pipeline or estimator
        Its last step is an estimator of Thresher.
    param_grid : mapping or sequence of mappings
        Lists of values, by parameter, such as ``clf__gravity``.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MaxAbsScaler
    >>> from thresher import FTRLClassifier
    >>> pipe = make_pipeline(MaxAbsScaler(), FTRLClassifier())
    >>> grid = {"ftrlclassifier__l1": [0.1, 1.0], "maxabsscaler__copy": [True, False]}
    >>> [len(group.points) for group in pipeline_groups(pipe, grid)]
    [2, 2]
    """
    if not is_pipeline(pipeline):
        return [PipelineGroup(pipeline, points_of(pipeline, param_grid))]
    own = f"{pipeline.steps[-1][0]}__"
    groups: dict[Any, PipelineGroup] = {}
    for number, chosen in enumerate(combinations(param_grid)):
        last = {k.removeprefix(own): v for k, v in chosen.items() if k.startswith(own)}
        others = {k: v for k, v in chosen.items() if not k.startswith(own)}
        key = tuple((name, _key(value)) for name, value in sorted(others.items()))
        if key not in groups:
            groups[key] = PipelineGroup(_with(pipeline, others))
            check_estimator(groups[key].estimator)
        point = point_of(groups[key].estimator, number, last)
        groups[key].points.append(replace(point, chosen=dict(chosen)))
    return list(groups.values())


def _with(pipeline: Pipeline, params: Mapping[str, Any]) -> Pipeline:
    """Return a copy of a pipeline with other parameters."""
    for name in params:
        if name.partition("__")[0] not in dict(pipeline.steps):
            last = pipeline.steps[-1][0]
            raise ParameterError(
                f"param_grid: the pipeline has no step for {name!r}; its steps are "
                f"{', '.join(dict(pipeline.steps))}; a parameter of the last step is written "
                f"{last}__NAME",
                parameter=name,
            )
    try:
        return clone(pipeline).set_params(**clone(dict(params), safe=False))
    except (ValueError, TypeError) as error:
        raise ParameterError(f"param_grid: {error}") from None


def _key(value: Any) -> tuple[Any, ...]:
    """Return a key that is equal for equal values; other values may have different keys."""
    plain = isinstance(value, str | bytes | int | float | bool | None)
    return (type(value), value) if plain else (type(value), id(value))


@dataclass(frozen=True)
class FitParams:
    """The arguments of the `fit` of a search.

    Attributes
    ----------
    routed : dict
        ``sample_weight`` and ``groups``.
    transformers : dict
        Arguments of transformers of a pipeline, ``STEP__NAME``.
    weight_name : str
        The name of ``sample_weight`` in the `fit` of the estimator.
    """

    routed: dict[str, Any]
    transformers: dict[str, Any]
    weight_name: str

    def of_fit(self, weights: Any) -> dict[str, Any]:
        """Return the arguments of the `fit` of the estimator."""
        return self.transformers | ({} if weights is None else {self.weight_name: weights})


def fit_params_of(estimator: Any, params: Mapping[str, Any]) -> FitParams:
    """Sort the arguments of `fit`; raise ParameterError for one that is not known."""
    allowed, weight = "sample_weight and groups", "sample_weight"
    before: list[str] = []
    if is_pipeline(estimator):
        before = [name for name, _ in estimator.steps[:-1]]
        weight = f"{estimator.steps[-1][0]}__sample_weight"
        allowed = f"sample_weight, groups, {weight}, and parameters of other steps (STEP__NAME)"
    routed = {k: v for k, v in params.items() if k in ("sample_weight", "groups", weight)}
    others = {k: v for k, v in params.items() if k.partition("__")[0] in before}
    unknown = sorted(set(params) - set(routed) - set(others))
    if unknown:
        raise ParameterError(
            f"OnePassSearchCV.fit takes only X, y, {allowed}; got {', '.join(unknown)}"
        )
    if weight in routed:
        routed["sample_weight"] = routed.pop(weight)
    return FitParams(routed, others, weight)


# ---- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PipelineRows:
    """Rows before the transformers of a pipeline, with their labels and weights.

    Attributes
    ----------
    X, y : arguments of `fit`
        X may be anything that the first transformer takes, such as a list of texts.
    weights : array or None
        Weights of the rows, for the last step.
    params : mapping
        More arguments of `fit`, for the transformers: ``STEP__NAME``.
    """

    X: Any
    y: Any
    weights: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def checked(X: Any, y: Any) -> tuple[Any, Any]:
        """Return rows and labels, of which some can be taken; sparse matrices become CSR."""
        refuse_malformed(X)
        return tuple(indexable(X, y))

    def part(self, rows: Any) -> PipelineRows:
        """Return some rows."""
        return PipelineRows(
            _safe_indexing(self.X, rows),
            _safe_indexing(self.y, rows),
            None if self.weights is None else _safe_indexing(self.weights, rows),
            _check_method_params(self.X, self.params, indices=rows),
        )

    def fit_transformed(self, transformers: Pipeline | None) -> Any:
        """Fit transformers to the rows, and return the transformed rows."""
        if transformers is None:
            return self.X
        refuse_malformed(self.X)
        return transformers.fit_transform(self.X, self.y, **self.params)

    def transformed(self, transformers: Pipeline | None) -> Any:
        """Return the rows, transformed by fitted transformers."""
        return self.X if transformers is None else transformers.transform(self.X)

    def transformed_once(self, pipeline: Pipeline) -> Any:
        """Return all rows transformed, if each row's result depends on the row alone; else None.

        This is so if no transformer learns anything in `fit`, by its tag, and if some rows that
        are transformed without the others have the same bits.
        """
        steps = [step for _, step in pipeline.steps[:-1] if step not in (None, "passthrough")]
        if any(get_tags(step).requires_fit for step in steps):
            return None
        found = self.fit_transformed(transformers_of(pipeline))
        rows = np.unique(np.linspace(0, _num_samples(self.X) - 1, _ALONE).astype(np.intp))
        for some in (rows, rows[:1]):
            try:
                alone = self.part(some).fit_transformed(transformers_of(pipeline))
            except Exception:  # it needs more rows, so it looks at them
                return None
            if not _equal(_safe_indexing(found, some), alone):
                return None
        return found


def transformers_of(pipeline: Pipeline) -> Pipeline | None:
    """Return a copy of all steps but the last, not fitted; None: there are none."""
    return clone(pipeline[:-1]) if len(pipeline.steps) > 1 else None


def joined(pipeline: Pipeline, transformers: Pipeline | None, model: Any) -> Pipeline:
    """Return a fitted pipeline from fitted transformers and the fitted last step."""
    before = [] if transformers is None else transformers.steps
    whole = clone(pipeline)
    whole.steps = [*before, (pipeline.steps[-1][0], model)]
    return whole


def _equal(some: Any, others: Any) -> bool:
    """Tell whether two matrices or tables are equal, to the bit."""
    if is_sparse(some) != is_sparse(others) or np.shape(some) != np.shape(others):
        return False
    if is_sparse(some):
        return bool((some != others).nnz == 0)
    return bool(np.array_equal(np.asarray(some), np.asarray(others)))
