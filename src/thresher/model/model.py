"""The learned model: sparse weights, names, history; prediction, saving and loading.

It imports neither scikit-learn nor SciPy, so that the command line starts fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.certificates import Certificate
from thresher.data import is_source
from thresher.data.dict_rows import is_dict_rows
from thresher.data.frames import is_frame
from thresher.losses import PROBABILITY_LOSSES
from thresher.model.evidence import Evidence, Why, outputs_without_signal, reason
from thresher.model.explain import Explanations
from thresher.model.exports import Exports
from thresher.model.feature_names import check_names, column_of
from thresher.model.frames import checked_matrix, rows_of_frame
from thresher.model.history import Feature, Output, Progress
from thresher.model.links import labels, probabilities, scores, values
from thresher.model.one_row import OneRowPredictions, rows_for
from thresher.model.one_row import predictor_of as row_predictor_of
from thresher.model.predict import predictor_of
from thresher.model.state import Continuing, LearnerState

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.source import Source
    from thresher.model.frontier import Place

__all__ = ["Feature", "Model", "Output", "Progress", "Why", "load"]


@dataclass(frozen=True, repr=False)
class Model(OneRowPredictions, Continuing, Explanations, Exports):
    """Sparse weights, and everything needed to use and understand them.

    Attributes
    ----------
    indptr : array of shape (outputs + 1,)
        Output k has the entries indptr[k]:indptr[k + 1]. Binary classifiers and regressors have one
        output, others one for each class.
    indices : array of uint64
        Features with nonzero weight, increasing within an output.
    weights : array of float64
        Their weights; none is zero.
    intercept : array of shape (outputs,)
    n_features : int
        Number of columns of the training data.
    classes : array or None
        Labels of a classifier.
    loss : str
    parameters : dict
        All parameters of the estimator that can be written as JSON.
    history : list of Progress
    names : dict or None
        Names of the features in `indices`, if the training data had names.
    certificates : tuple of thresher.certificates.Certificate
        Guarantees of theorems for this model: a number, or the reason why there is none.
    evidence : Evidence or None
        Evidence of the stabilized rule for each feature; see `why`.
    frontier : Place or None
        Errors and nonzeros of all models of the search, if the model came from one.
    learner : LearnerState or None
        The state of its learner, in memory or in its file; pickles do not keep it.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import TruncatedGradientClassifier
    >>> X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] * 50)
    >>> model = TruncatedGradientClassifier(random_state=0).fit(X, [1, 0] * 50).model_
    >>> model.nnz, model.n_features
    (2, 3)
    >>> [feature.name for feature in model.top(2)] in ([0, 1], [1, 0])
    True
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    n_features: int
    classes: NDArray[Any] | None
    loss: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Progress] = ()
    names: Mapping[int, str] | None = None
    certificates: tuple[Certificate, ...] = ()
    evidence: Evidence | None = None
    frontier: Place | None = None
    learner: LearnerState | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.indptr, self.indices, self.weights, self.intercept):
            array.setflags(write=False)

    @classmethod
    def of(cls, outputs: Sequence[Output], **rest: Any) -> Model:
        """Make a model from its outputs.

        Parameters
        ----------
        outputs : sequence of Output
        **rest
            All other attributes.
        """
        return cls(
            indptr=np.cumsum([0] + [len(output.keys) for output in outputs], dtype=np.int64),
            indices=np.concatenate([output.keys for output in outputs]),
            weights=np.concatenate([output.weights for output in outputs]),
            intercept=np.array([output.intercept for output in outputs]),
            **rest,
        )

    @property
    def nnz(self) -> int:
        """Number of nonzero weights, over all outputs."""
        return len(self.indices)

    @property
    def multilabel(self) -> bool:
        """Whether rows have any number of labels, with one output per label."""
        return bool(self.parameters.get("multilabel", False))

    @property
    def density(self) -> float:
        """Share of nonzero weights among all weights (R-0.6)."""
        return self.nnz / (len(self.intercept) * self.n_features)

    def top(
        self, n: int = 20, label: Any = None, names: Sequence[str] | None = None
    ) -> list[Feature]:
        """Return the n features of largest absolute weight, largest first.

        With two classes, a positive weight is evidence for the second, ``classes[1]``.

        Parameters
        ----------
        n : int
            Number of features, over all outputs.
        label : object, optional
            Only the output of this class, if there are more than two classes.
        names : sequence of str, optional
            Names of all features, for example ``vectorizer.get_feature_names_out()``.
        """
        if n < 0:
            raise ValueError(f"n must be >= 0; got {n}")
        labels = self._labels(label)
        named = self if names is None else self.named(names)
        outputs = np.repeat(np.arange(len(self.intercept)), np.diff(self.indptr))
        order = np.lexsort((self.indices, -np.abs(self.weights)))
        if label is not None:
            order = order[outputs[order] == labels.index(label)]
        return [
            Feature(
                named.name(int(self.indices[i])),
                float(self.weights[i]),
                labels[outputs[i]] if labels else None,
            )
            for i in order[:n]
        ]

    def _labels(self, label: Any) -> list[Any]:
        """Return the labels of the outputs if there are several; check that `label` is one."""
        labels = [] if self.classes is None or len(self.intercept) == 1 else self.classes.tolist()
        if label is not None and label not in labels:
            raise ValueError(f"label {label!r} has no output; labels with an output: {labels}")
        return labels

    def why(self, feature: str | int, label: Any = None, names: Sequence[str] | None = None) -> Why:
        """Return the weight of a feature and, for the stabilized rule, its evidence.

        Parameters
        ----------
        feature : str or int
            Its name, or its column.
        label : object, optional
            The class; must be given if there are more than two.
        names : sequence of str, optional
            Names of all features, for example ``vectorizer.get_feature_names_out()``.
        """
        labels = self._labels(label)
        if labels and label is None:
            raise ValueError(f"label= must be given: each class has weights; one of {labels}")
        index = column_of(feature, self.n_features, self.names or {}, names)
        output = labels.index(label) if labels else 0
        begin, end = self.indptr[output], self.indptr[output + 1]
        at = int(begin + np.searchsorted(self.indices[begin:end], np.uint64(index)))
        found = at < end and int(self.indices[at]) == index
        known = {} if self.evidence is None else self.evidence.of(output, index)
        return Why(
            self.name(index) if names is None else str(names[index]),
            float(self.weights[at]) if found else 0.0,
            **known,
            reason=reason(known, self.parameters, output in outputs_without_signal(self)),
        )

    def __repr__(self) -> str:
        """Return a summary in one line."""
        kind = "regression" if self.classes is None else f"{len(self.classes)} classes"
        weights = f"{self.nnz:,} of {len(self.intercept) * self.n_features:,} weights"
        return f"<Model: {weights} are not zero, {self.loss}, {kind}>"

    def name(self, index: int) -> str | int:
        """Return the name of a feature, or its number if it has none."""
        return index if self.names is None else self.names.get(index, index)

    def named(self, names: Sequence[str]) -> Model:
        """Return the same model with names for its features.

        Parameters
        ----------
        names : sequence of str
            Names of all features, for example ``vectorizer.get_feature_names_out()``.

        Examples
        --------
        >>> from thresher import FTRLClassifier
        >>> model = FTRLClassifier().fit([[0.0, 1.0], [0.0, -1.0]] * 20, [1, 0] * 20).model_
        >>> model.named(["age", "price"]).top(1)[0].name
        'price'
        """
        check_names(names, self.n_features)
        kept = np.unique(self.indices).tolist()
        return replace(self, names={index: str(names[index]) for index in kept})

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return raw scores: shape (rows,) with one output, else (rows, outputs).

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), list of dicts, or source
            The columns of a DataFrame are found by their names, if the training data had names.
        """
        if is_dict_rows(X):
            found = row_predictor_of(self).few(X)
            if found is not None:
                return found[:, 0] if found.shape[1] == 1 else found
            X = rows_for(self, X)
        if is_source(X):
            return scores(self.raw(X), self.loss, self.classes is not None)
        if is_frame(X):
            X = rows_of_frame(self, X)
            if is_source(X):
                return scores(self.raw(X), self.loss, self.classes is not None)
        X = checked_matrix(self, X)
        return scores(self.raw(X), self.loss, self.classes is not None)

    def raw(self, X: Any) -> NDArray[np.float64]:
        """Return the raw predictions of each output; X is not checked.

        Parameters
        ----------
        X : CSR matrix or array of shape (rows, features), or source
        """
        if is_source(X):
            found = [raw for _, raw in self.raw_blocks(X)]
            return np.concatenate(found) if found else np.zeros((0, len(self.intercept)))
        return predictor_of(self).of_matrix(X)

    def raw_blocks(
        self, source: Source, labelled: bool = False
    ) -> Iterator[tuple[Block, NDArray[np.float64]]]:
        """Yield the blocks of a source, each with the raw predictions of its rows.

        Features that the training data did not have are ignored.

        Parameters
        ----------
        source : Source
            The result of `thresher.scan`.
        labelled : bool
            Whether rows without a label are left out, if the source leaves out bad lines.
        """
        predictor = predictor_of(self)
        kinds = json.loads(str(self.parameters.get("kinds") or "{}"))  # of columns of tables
        for block in source.plain.blocks(dtype="float64", kinds=kinds, labelled=labelled):
            yield block, predictor.of_block(block)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return labels of a classifier, or values of a regressor.

        If rows have any number of labels, the result is an array of 0 and 1 of shape
        (rows, labels).

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        decision = self.decision_function(X)
        if self.multilabel:
            return (decision.reshape(-1, len(self.intercept)) >= 0).astype(np.int64)
        if self.classes is None:
            return values(decision, self.loss)
        return labels(decision, self.classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities of the classes, for the losses logistic and clipped_square.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
        """
        if self.classes is None or self.loss not in PROBABILITY_LOSSES:
            raise ValueError(
                f"probabilities need a classifier with one of {', '.join(PROBABILITY_LOSSES)}"
            )
        return probabilities(self.decision_function(X), self.loss, len(self.classes))

    def save(self, path: str | PathLike[str], state: bool = False) -> None:
        """Write the model to a file, atomically.

        The file is in safetensors format, with a checksum and without time stamps: equal models
        give equal bytes. Loading it never runs code.

        Parameters
        ----------
        path : path
        state : bool
            Whether the file also has the state of the learner, so that training can go on from it;
            see `estimator`.
        """
        from thresher.model.file import write

        write(self, path, state)

    def report(
        self,
        path: str | PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        names: Sequence[str] | None = None,
        title: str | None = None,
    ) -> None:
        """Write a report about the model: one HTML file, which needs no network.

        Parameters
        ----------
        path : path
            The file; it is written atomically.
        X : CSR matrix, array, DataFrame of shape (rows, features), or source, optional
            Rows to check for problems and, with y, to evaluate the model on.
        y : array of shape (rows,), optional
            Their labels; a source has its own.
        names : sequence of str, optional
            Names of all features, for example ``vectorizer.get_feature_names_out()``.
        title : str, optional
        """
        from thresher.report.model_page import write

        write(self, path, X, y, names=names, title=title)

    def _repr_html_(self) -> str:
        """Return a short description of the model, for a notebook."""
        from thresher.report.model_page import model_fragment

        return model_fragment(self)


def load(path: str | PathLike[str]) -> Model:
    """Read a model that `Model.save` wrote.

    Parameters
    ----------
    path : path

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or has a newer format; the message says which.

    Examples
    --------
    >>> import os, tempfile, thresher
    >>> from thresher import FTRLClassifier
    >>> model = FTRLClassifier().fit([[0.0, 1.0], [1.0, 0.0]] * 20, ["no", "yes"] * 20).model_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "a.thresher"))
    ...     thresher.load(os.path.join(folder, "a.thresher")).predict([[1.0, 0.0]]).tolist()
    ['yes']
    """
    from thresher.model.file import read

    return read(path)
