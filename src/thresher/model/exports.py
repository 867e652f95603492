"""Converts a model to other forms: the methods `to_frame`, `to_json`, ..."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from thresher.atomic import write_whole


class Exports:
    """Mixin of `Model`: the model in forms that other programs read."""

    def to_frame(self: Any, kind: str = "pandas") -> Any:
        """Return the nonzero weights as a table: feature, name, label, weight.

        Parameters
        ----------
        kind : {"pandas", "polars", "arrow"}

        Returns
        -------
        DataFrame or Arrow table
            `feature` is the number of the column, `name` its name (missing if it has none), `label`
            the class of the output (missing with one output). Outputs come in the order of the
            classes, features of an output by number. `Model.intercept` is not part of it.

        Examples
        --------
        >>> from thresher import FTRLClassifier
        >>> rows = [{"age": 3.0, "colour": "red"}, {"age": 1.0, "colour": "blue"}] * 50
        >>> y = ["yes", "no"] * 50
        >>> model = FTRLClassifier(l1=0.0).partial_fit(rows, y, classes=["no", "yes"]).model_
        >>> table = model.to_frame("arrow")
        >>> table.column_names, sorted(table["name"].to_pylist())
        (['feature', 'name', 'label', 'weight'], ['age', 'colour^blue', 'colour^red'])
        """
        from thresher.export.weights import frame_of_weights

        return frame_of_weights(self, kind)

    def to_csv(self: Any) -> str:
        """Return the weights as CSV: the columns of `to_frame`.

        The intercept of each output is a line without a number, named (intercept).
        """
        from thresher.export.weights import to_csv

        return to_csv(self)

    def to_json(self: Any) -> str:
        """Return the model as JSON: classes, weights, intercepts and parameters.

        The schema is described in docs/export.md.
        """
        from thresher.export.weights import to_json

        return to_json(self)

    def to_vw(self: Any) -> str:
        """Return lines like those of ``vw --invert_hash``: name:number:weight.

        They are for reading: VW cannot load them, because its hashes of names are other numbers.
        """
        from thresher.export.weights import to_vw

        return to_vw(self)

    def to_sklearn(self: Any) -> Any:
        """Return a fitted estimator of scikit-learn that predicts the same.

        Returns
        -------
        estimator
            `LogisticRegression` (two classes), `LinearSVC` (hinge, squared_hinge, margin),
            `PoissonRegressor` (poisson), else `SGDClassifier` or `SGDRegressor`. `coef_` is a CSR
            matrix; `PoissonRegressor` has an array.

        Raises
        ------
        ParameterError
            If rows have any number of labels, for the loss clipped_square, and for models with
            more than 2^30 features.

        Examples
        --------
        >>> from thresher import FTRLClassifier
        >>> X = [[0.0, 1.0], [1.0, 0.0]]
        >>> model = FTRLClassifier().fit(X * 20, ["no", "yes"] * 20).model_
        >>> estimator = model.to_sklearn()
        >>> type(estimator).__name__, estimator.predict(X).tolist()
        ('LogisticRegression', ['no', 'yes'])
        """
        from thresher.export.scikit_learn import to_sklearn

        return to_sklearn(self)

    def to_sql(
        self: Any,
        dialect: str = "sqlite",
        *,
        table: str | Sequence[str] | None = None,
        names: Sequence[str] | None = None,
    ) -> str:
        """Return the predictions as SQL over the columns of a table.

        Parameters
        ----------
        dialect : {"sqlite", "duckdb", "postgres", "mysql"}
        table : str or sequence of str, optional
            The table, or the parts of its name such as ``["main", "clients"]``. Default: only the
            expression of the score is returned, for models with one output.
        names : sequence of str, optional
            Names of the columns of all features, which are numbers. Default: the names in the
            model; features without names are the columns x0, x1, ...

        Returns
        -------
        str
            An expression, or a query that returns all columns of the table and predicted_score,
            predicted_label and predicted_probability (of the second class), or predicted_value.
            With more than two classes, scores and probabilities are numbered in the order of the
            classes: predicted_score_0, ...

        Examples
        --------
        >>> import sqlite3
        >>> from thresher import FTRLRegressor
        >>> model = FTRLRegressor().fit([[0.0, 1.0], [1.0, 0.0]] * 20, [3.0, 1.0] * 20).model_
        >>> expression = model.to_sql("sqlite", names=["height", "width"])
        >>> query = f"SELECT {expression} FROM (SELECT 1.0 AS height, 0.0 AS width)"
        >>> (found,) = sqlite3.connect(":memory:").execute(query).fetchone()
        >>> bool(abs(found - model.predict([[1.0, 0.0]])[0]) < 1e-12)
        True
        """
        from thresher.export.sql import to_sql

        return to_sql(self, dialect, table, names)

    def to_onnx(
        self: Any,
        path: str | PathLike[str],
        *,
        inputs: str = "auto",
        names: Sequence[str] | None = None,
    ) -> None:
        """Write the model as an ONNX file; needs the package onnx (thresher[export]).

        The first output holds labels, the second probabilities, or scores if the loss has no
        probabilities. A regression has one output, the values.

        Parameters
        ----------
        path : path
            The file; it is written atomically.
        inputs : {"auto", "matrix", "dict"}
            "matrix": rows as a dense float32 matrix. "dict": one row as a map from names of
            features to float32 numbers. "auto": "dict" for models of named features, whose names
            are hashed, and for models of tables; else "matrix".
        names : sequence of str, optional
            Names of all features, for "dict".
        """
        from thresher.export.onnx_graph import to_onnx

        write_whole(path, to_onnx(self, names, inputs))
