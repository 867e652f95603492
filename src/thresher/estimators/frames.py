"""Frames as input of estimators: frames of numbers are matrices, others are sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import (
    _check_feature_names,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from thresher.data.arrays import is_sparse, refuse_texts
from thresher.data.frame_parts import frame_source
from thresher.data.frame_reading import by_name, reading_for, source_for
from thresher.data.frames import (
    cells_of,
    columns_of,
    has_words,
    is_frame,
    matrix_of,
    opened,
    select,
    sparse_columns,
    unique_names,
)
from thresher.data.matrix_source import MatrixSource
from thresher.data.missing import advice
from thresher.data.read_options import ReadOptions
from thresher.errors import InputError, ParameterError
from thresher.sparse_checks import refuse_malformed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thresher.data.source import Source
    from thresher.losses import Task
    from thresher.training.fitted import FittedState


_PLAIN = {np.ndarray, sp.csr_matrix, sp.csr_array}
_SHOWN = 80  # letters of an error that scikit-learn makes of a text
_FLOATS = {np.dtype(np.float32), np.dtype(np.float64)}


class FrameRows:
    """A frame with words, in place of the matrix X.

    Parameters
    ----------
    frame : frame
    reading : ReadOptions
        How its columns make features.
    """

    def __init__(self, frame: Any, reading: ReadOptions) -> None:
        self.frame, self.reading = opened(frame), reading
        unused = (*reading.ignore, reading.label, reading.weight)
        names = unique_names(columns_of(self.frame))
        self.columns = [name for name in names if name not in unused]
        self.shape = int(self.frame.shape[0]), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def source(self, y: Any, weights: NDArray[np.float64] | None = None) -> Source:
        """Return the rows as a source, with these labels and weights."""
        return frame_source(self.frame, self.reading, y, weights)


class FrameInput:
    """Mixin of estimators: checks of rows, which may be in a frame."""

    _layout: ClassVar[str]
    _core_checks_rows: ClassVar[bool]
    task: ClassVar[Task]
    _fitted: FittedState
    _frame_options: tuple[ReadOptions, list[str]]  # of the frame with words to learn from
    _label_column: str

    # ---- labels and options of `fit` -----------------------------------------------------------

    def _frame_given(
        self, X: Any, y: Any, label: str | None, reading: Mapping[str, Any] | None
    ) -> tuple[Any, Any]:
        """Return the rows and labels of `fit`; frames with words become `FrameRows`."""
        for name in ("_frame_options", "_label_column"):
            self.__dict__.pop(name, None)
        if not is_frame(X):
            if label is not None or reading is not None:
                raise ParameterError(
                    "label= and reading= are for frames",
                    owner=type(self).__name__,
                    hint="the options of scan say how files are read",
                )
            return X, y
        X, options = opened(X), dict(reading or {})
        label = label if label is not None else options.get("label")
        if label is not None:
            if y is not None:
                raise ParameterError("give y or label=, not both", owner=type(self).__name__)
            y = cells_of(X, label)
            X = select(X, [name for name in columns_of(X) if name != label])
            self._label_column = label
            options["label"] = label
        if has_words(X) or set(options) - {"label"}:
            return FrameRows(X, ReadOptions.of(**options)), y
        return X, y

    # ---- checks --------------------------------------------------------------------------------

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        if is_frame(X):
            X = self._known_frame(opened(X), reset)
        if isinstance(X, FrameRows):
            return X, self._labels_of_frame(X, y, reset)
        options = {"accept_sparse": self._layout, "y_numeric": self.task == "regressor"}
        X, y = self._matrix(X, reset, y=y, **options)
        return X, y

    def _checked_rows(self, X: Any) -> Any:
        """Check rows to predict on; rows of a frame with words are returned as a source."""
        if self._needs_no_check(X):
            return X
        check_is_fitted(self, "_fitted")
        if is_frame(X):
            X, reading = opened(X), self._fitted.reading
            if self._reads_frames():
                kinds = {} if not self._fitted.kinds else {"kinds": json.dumps(self._fitted.kinds)}
                return source_for({**reading, **kinds}, X)
            X = self._known_frame(X, reset=False)
        return self._matrix(X, reset=False, accept_sparse="csr")

    def _needs_no_check(self, X: Any) -> bool:
        """Tell whether X is a CSR matrix or an array of floats, with the columns of training.

        All else takes the way of scikit-learn, which takes ten times as long as one prediction.
        """
        fitted = self.__dict__
        if "_fitted" not in fitted or "feature_names_in_" in fitted:
            return False
        if type(X) not in _PLAIN or X.ndim != 2:
            return False
        rows, columns = X.shape
        return rows > 0 and columns == fitted.get("n_features_in_") and X.dtype in _FLOATS

    def _reads_frames(self) -> bool:
        """Tell whether the training rows were a table or a frame with words."""
        return bool(self._fitted.reading.get("frame_columns") or self._fitted.kinds)

    def _known_frame(self, frame: Any, reset: bool) -> Any:
        """Return a frame of numbers in the order of training, or a frame with words as rows."""
        if reset:
            return FrameRows(frame, ReadOptions()) if has_words(frame) else frame
        if hasattr(self, "_frame_options"):
            reading, known = self._frame_options
            unused = [name for name in (*reading.ignore, reading.label, reading.weight) if name]
            weight = [reading.weight] if reading.weight else []
            return FrameRows(by_name(frame, [*known, *weight], unused), reading)
        if hasattr(self, "_fitted") and self._reads_frames():
            options = reading_for(self._fitted.reading) | {"labelled": True}
            known = json.loads(self._fitted.reading.get("frame_columns") or "[]")
            unused = [name for name in (*options["ignore"], options.get("label")) if name]
            frame = by_name(frame, known, unused) if known else frame
            return FrameRows(frame, ReadOptions.of(**options))
        names = columns_of(frame)
        label = getattr(self, "_label_column", None)
        trained = list(getattr(self, "feature_names_in_", []))
        if label in names and label not in trained:
            names.remove(label)
            frame = select(frame, names)
        if trained and set(trained) == set(names) and len(trained) == len(names):
            frame = frame if trained == names else select(frame, trained)
        elif trained:
            _check_feature_names(self, frame, reset=False)
        if has_words(frame):
            words = [str(name) for name in names if has_words(select(frame, [name]))]
            raise ParameterError(
                f"column '{words[0]}' holds words, and held numbers in the training data",
                owner=type(self).__name__,
            )
        return frame

    def _labels_of_frame(self, X: FrameRows, y: Any, reset: bool) -> NDArray[Any]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} needs labels: pass y, or name their column with label="
            )
        y = _check_y(y, multi_output=False, y_numeric=self.task == "regressor", estimator=self)
        check_consistent_length(X, y)
        if reset:
            self.feature_names_in_ = np.array(X.columns, dtype=object)
            self.n_features_in_ = len(X.columns)
            self._frame_options = X.reading, X.columns
        return np.asarray(y)

    def _matrix(self, X: Any, reset: bool, **options: Any) -> Any:
        """Check a matrix, an array or a frame of numbers, and labels."""
        options |= {
            "reset": reset,
            "accept_large_sparse": True,
            "dtype": [np.float64, np.float32],
            "order": "C",
            "ensure_all_finite": False,
        }
        if not is_frame(X):
            refuse_texts(X)
            refuse_malformed(X, rows_checked=not reset or self._core_checks_rows)
            with _long_words_cut():
                return validate_data(self, X, **options)
        names = columns_of(X)
        if sparse_columns(X):
            with self._named_by(names, reset):
                checked = validate_data(self, matrix_of(X), **options)
        else:
            checked = validate_data(self, X, **options)
        refuse_missing(checked[0] if "y" in options else checked, names)
        return checked

    @contextmanager
    def _named_by(self, names: list[Any], reset: bool) -> Iterator[None]:
        """Use these names of columns, while scikit-learn checks a matrix without names."""
        before = self.__dict__.pop("feature_names_in_", None)
        yield
        if not reset:
            kept = before
        else:
            kept = np.array(names, object) if all(isinstance(n, str) for n in names) else None
        if kept is not None:
            self.feature_names_in_ = kept

    def _rows(self, X: Any, y: Any, weights: Any) -> Source | MatrixSource:
        """Return checked rows with their labels as a source that knows the names of columns."""
        if isinstance(X, FrameRows):
            return X.source(y, weights)
        rows = MatrixSource(X, y, weights)
        rows.column_names = getattr(self, "feature_names_in_", None)
        return rows

    def _frame_facts(self) -> dict[str, Any]:
        """Return the columns and the column of labels of a frame of numbers, for the model."""
        columns = getattr(self, "feature_names_in_", None)
        if self._fitted.reading or columns is None:
            return {}
        label = {"label": self._label_column} if hasattr(self, "_label_column") else {}
        return {"frame_columns": json.dumps(columns.tolist()), **label}

    def set_columns(self, columns: list[str], width: int, label: str | None = None) -> None:
        """Set the attributes of the columns of training, as `fit` does.

        Parameters
        ----------
        columns : list of str
            The columns of a frame of numbers; empty: X was a matrix.
        width : int
            Number of features.
        label : str, optional
            The column of the frame that held the labels.
        """
        self.n_features_in_ = len(columns) or width
        if columns:
            self.feature_names_in_ = np.array(columns, object)
            if label is not None:
                self._label_column = label

    def _set_columns(self, state: FittedState) -> None:
        """Set the attributes of columns after training on a source."""
        columns = json.loads(state.reading.get("frame_columns") or "[]")
        self.n_features_in_ = len(columns) or state.width
        self.__dict__.pop("feature_names_in_", None)
        if columns:
            self.feature_names_in_ = np.array(columns, object)


def refuse_missing(X: Any, names: list[Any]) -> None:
    """Raise DataError if a matrix made of a frame has a NaN; it names the row and the column."""
    values = X.data if is_sparse(X) else X
    if not np.isnan(np.sum(values, dtype=np.float64)):  # may also be infinity minus infinity
        return
    if is_sparse(X):
        table = X.tocoo()
        bad = np.flatnonzero(np.isnan(table.data))
        found = list(zip(table.row[bad].tolist(), table.col[bad].tolist(), strict=True))[:1]
    else:
        found = np.argwhere(np.isnan(X))[:1].tolist()
    for row, column in found:
        name = names[column]
        what = f"row {row}, column '{name}': the value is missing (NaN)"
        raise InputError(what, hint=advice(name))


@contextmanager
def _long_words_cut() -> Iterator[None]:
    """Shorten the error that a cell is a text: scikit-learn shows all of it."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        if not text.startswith("could not convert string to float") or len(text) <= _SHOWN:
            raise
        raise ParameterError(
            f"{text[:_SHOWN]}...; give numbers, or a DataFrame: see docs/frames.md"
        ) from None


def labelled_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows in memory and their labels; a frame may have them in a column."""
    if y is None and is_frame(X):
        X = opened(X)
        label = getattr(estimator, "_label_column", None) or (
            estimator.state_.reading.get("label") if not estimator._is_new() else None  # noqa: SLF001
        )
        if label and label in columns_of(X):
            y = cells_of(X, label)
    return X, y
