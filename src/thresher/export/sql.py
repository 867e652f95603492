"""The predictions of a model as SQL: an expression, or a whole query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thresher.errors import ParameterError
from thresher.export.refusals import check_linear
from thresher.export.sql_columns import Column, columns_of
from thresher.export.sql_dialects import Dialect, dialect_of
from thresher.losses import LOSSES

if TYPE_CHECKING:
    from thresher.model.model import Model

__all__ = ["to_sql"]

_GROUP = 8  # terms of a sum; sums of sums keep the depth of an expression small
_MOST_CLASSES = 100  # databases take seconds to plan a query with more
_EXPONENT = 709.0  # exponentials of numbers up to here are finite
_SCORE, _PROBABILITY, _BEST = "predicted_score", "predicted_probability", "predicted_best"


def to_sql(
    model: Model,
    dialect: str,
    table: str | Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> str:
    """Return the score as an expression, or a query with predictions.

    Parameters
    ----------
    model : Model
    dialect : str
    table : str or sequence of str, optional
    names : sequence of str, optional
    """
    sql = dialect_of(dialect)
    check_linear(model, "SQL")
    if len(model.intercept) > _MOST_CLASSES:
        raise ParameterError(
            f"the model has {len(model.intercept):,} classes, and SQL is written for at most "
            f"{_MOST_CLASSES}"
        )
    outputs = columns_of(model, names)
    count = len({column.name for columns in outputs for column in columns})
    results = 2 * len(outputs) + 2
    if count + results > sql.most_columns:
        raise ParameterError(
            f"the model has weights for {count:,} columns, and a table of {sql.name} has at most "
            f"{sql.most_columns:,} with those of the result",
            hint="train a sparser model, for example with target_nnz",
        )
    scores = [
        _score(sql, columns, float(intercept), model.parameters.get("missing"))
        for columns, intercept in zip(outputs, model.intercept.tolist(), strict=True)
    ]
    if table is None:
        if len(scores) > 1:
            raise ParameterError(
                f"the model has a score for each of {len(scores)} classes: give table=, for a "
                "query that returns all of them"
            )
        return scores[0]
    taken = {column.name for columns in outputs for column in columns}
    clash = sorted(name for name in taken if name.lower().startswith("predicted_"))
    if clash:
        raise ParameterError(
            f"the column {clash[0]!r} has a name like those of the result; give table=None for "
            "the expression alone"
        )
    parts = [table] if isinstance(table, str) else list(table)
    return _query(model, sql, scores, ".".join(map(sql.identifier, parts)))


# ---- the score -----------------------------------------------------------------------------------


def _score(sql: Dialect, columns: Sequence[Column], intercept: float, missing: Any) -> str:
    """Return intercept + weight x value + ..., as the model adds them up to rounding."""
    terms = [sql.double(intercept), *(_term(sql, column, missing) for column in columns)]
    return _sum(terms)


def _sum(terms: list[str]) -> str:
    """Return a sum of sums: the depth of an expression is limited."""
    while len(terms) > 1:
        terms = [
            "(" + "\n + ".join(terms[at : at + _GROUP]) + ")" for at in range(0, len(terms), _GROUP)
        ]
    return terms[0]


def _term(sql: Dialect, column: Column, missing: Any) -> str:
    """Return what a column adds to the score.

    A missing cell adds nothing, or the weight of the indicator. If the model was trained with
    missing="error", the score of such a row is NULL.
    """
    cell = sql.identifier(column.name)
    other = "NULL" if missing == "error" else sql.double(column.missing)
    if column.kind == "number":
        value = f"{sql.double(column.weight)} * CAST({cell} AS {sql.number})"
        if missing == "error":
            return value
        return f"CASE WHEN {cell} IS NULL THEN {other} ELSE {value} END"
    if column.kind == "truth":
        return (
            f"CASE WHEN {cell} IS NULL THEN {other} WHEN {cell} THEN {sql.double(column.weight)} "
            f"ELSE {sql.double(0.0)} END"
        )
    cases = "".join(
        f" WHEN {sql.text(value)} THEN {sql.double(weight)}"
        for value, weight in column.cases.items()
    )
    found = f"CASE CAST({cell} AS {sql.string}){cases} ELSE {sql.double(0.0)} END"
    if missing != "error" and not column.missing:
        return found
    return f"CASE WHEN {cell} IS NULL THEN {other} ELSE {found} END"


# ---- the query -----------------------------------------------------------------------------------


def _query(model: Model, sql: Dialect, scores: list[str], table: str) -> str:
    if len(scores) > 1:
        return _query_of_classes(model, sql, scores, table)
    score = sql.identifier(_SCORE)
    inner = f"SELECT *, {scores[0]} AS {score}\nFROM {table}"
    link, low = LOSSES[model.loss].link, LOSSES[model.loss].low
    if model.classes is None:
        value = _linked(sql, score, link, low)
        return _outer(sql, [(value, "predicted_value")], inner)
    no, yes = (_literal(sql, label) for label in model.classes.tolist())
    zero = sql.double(0.0)
    label = f"CASE WHEN {score} >= {zero} THEN {yes} WHEN {score} < {zero} THEN {no} END"
    columns = [(label, "predicted_label")]
    if link != "identity":
        columns.append((_linked(sql, score, link, low), _PROBABILITY))
    return _outer(sql, columns, inner)


def _query_of_classes(model: Model, sql: Dialect, scores: list[str], table: str) -> str:
    """Return a query in steps: scores; the highest, and probabilities; the label."""
    assert model.classes is not None
    names = [sql.identifier(f"{_SCORE}_{k}") for k in range(len(scores))]
    shown = ",\n ".join(f"{score} AS {name}" for score, name in zip(scores, names, strict=True))
    inner = f"SELECT *, {shown}\nFROM {table}"
    steps = [(_largest(sql, names), _BEST)]
    link, low = LOSSES[model.loss].link, LOSSES[model.loss].low
    shares = [f"predicted_share_{k}" for k in range(len(scores))]
    if link != "identity":
        linked = [_linked(sql, name, link, low) for name in names]
        steps += list(zip(linked, shares, strict=True))
    inner = _outer(sql, steps, inner)
    best = sql.identifier(_BEST)
    labels = (_literal(sql, label) for label in model.classes.tolist())
    cases = " ".join(
        f"WHEN {name} = {best} THEN {label}" for name, label in zip(names, labels, strict=True)
    )
    columns = [(f"CASE {cases} END", "predicted_label")]
    if link != "identity":
        quoted = [sql.identifier(share) for share in shares]
        total = _sum(quoted)
        even = sql.double(1.0 / len(scores))
        columns += [
            (f"CASE WHEN {total} <= 0 THEN {even} ELSE {share} / {total} END",
             f"{_PROBABILITY}_{k}")
            for k, share in enumerate(quoted)
        ]  # fmt: skip
    return _outer(sql, columns, inner)


def _largest(sql: Dialect, names: list[str]) -> str:
    """Return the largest of the scores; NULL if one is NULL."""
    found = names
    while len(found) > 1:  # the number of arguments of a function is limited
        groups = [found[at : at + _GROUP] for at in range(0, len(found), _GROUP)]
        found = [f"{sql.greatest}({', '.join(g)})" if len(g) > 1 else g[0] for g in groups]
    return f"CASE WHEN {_sum(names)} IS NOT NULL THEN {found[0]} END"


def _outer(sql: Dialect, columns: Sequence[tuple[str, str]], inner: str) -> str:
    """Return a query of all columns of another one, and more."""
    shown = "".join(f",\n {value} AS {sql.identifier(name)}" for value, name in columns)
    return f"SELECT *{shown}\nFROM (\n{inner}\n) AS {sql.identifier(columns[0][1] + '_of')}"


def _linked(sql: Dialect, score: str, link: str, low: float) -> str:
    """Return the probability, or the value, of a score."""
    if link == "sigmoid":
        exponent = sql.clipped(f"-{score}", -_EXPONENT, _EXPONENT)
        return f"{sql.double(1.0)} / ({sql.double(1.0)} + exp({exponent}))"
    if link == "clip":
        clipped = sql.clipped(score, low, 1.0)
        return f"({clipped} - {sql.double(low)}) / {sql.double(1.0 - low)}"
    return f"exp({sql.clipped(score, -30.0, 30.0)})" if link == "exp" else score


def _literal(sql: Dialect, label: Any) -> str:
    if isinstance(label, str):
        return sql.text(label)
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    whole = float(label) == int(label)
    return str(int(label)) if whole else sql.double(float(label))
