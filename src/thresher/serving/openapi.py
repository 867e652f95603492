"""The description of the API in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from thresher._version import __version__
from thresher.data.text_rows import LINE_FORMATS
from thresher.serving.limits import Limits

_VALUE = {"type": ["string", "number", "boolean", "null", "array"]}
_LABEL = {"type": ["string", "number", "boolean"]}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer", "minimum": 0}


def description(limits: Limits, learns: bool, token: bool) -> dict[str, Any]:
    """Return the description as JSON types.

    Parameters
    ----------
    limits : Limits
    learns : bool
        Whether there is `/learn`.
    token : bool
        Whether requests need a token.

    Examples
    --------
    >>> description(Limits(), learns=False, token=False)["openapi"]
    '3.1.0'
    """
    paths = {
        "/predict": {"post": _post("predict", "Predict rows.", "Prediction", _PREDICT, limits)},
        "/explain": {"post": _post("explain", "What each feature adds to the score, largest first.",
                                   "Explanation", _EXPLAIN, limits)},
        "/models": {"get": _get("models", "The served models.", _ref("Models"))},
        "/healthz": {"get": _get("healthz", "Whether the server works, and each model's file.",
                                 _ref("Health"), open_to_all=True)},
        "/metrics": {"get": _get("metrics", "Metrics in the text format of Prometheus.", None)},
        "/openapi.json": {"get": _get("openapi", "This description.", {"type": "object"})},
    }  # fmt: skip
    if learns:
        paths["/learn"] = {"post": _learn(limits)}
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Thresher", "version": __version__,
                 "description": "Predictions of sparse linear models."},
        "paths": paths,
        "components": {"schemas": _schemas(limits)},
    }  # fmt: skip
    if token:
        scheme = {"type": "http", "scheme": "bearer"}
        found["components"]["securitySchemes"] = {"token": scheme}
        found["security"] = [{"token": []}]
    return found


_OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "model": ({"type": "string"}, "The name of the model; needed if there are several."),
    "probability": ({"type": "boolean"}, "Add the probability of each class."),
    "raw": ({"type": "boolean"}, "Add the score: of one class, or of each class."),
    "unknown": ({"type": "boolean", "default": True}, "Look for features the model does not have."),
    "top": ({"type": "integer", "minimum": 1, "maximum": 10_000},
            "How many classes, or features of an explanation, to list."),
    "label": (_LABEL, "The class to explain. By default the second of two, or the best of more."),
    "format": ({"enum": list(LINE_FORMATS)}, "The format of a body of text."),
}  # fmt: skip
_PREDICT = ("model", "probability", "raw", "top", "unknown", "format")
_EXPLAIN = ("model", "top", "label", "unknown", "format")
_EXPLAINED = ("prediction", "raw", "intercept", "contributions", "others")


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _post(
    name: str, about: str, answer: str, options: tuple[str, ...], limits: Limits
) -> dict[str, Any]:
    members = {option: _OPTIONS[option][0] for option in options if option != "format"}
    object_ = {
        "type": "object",
        "required": ["rows"],
        "additionalProperties": False,
        "properties": {"rows": _ref("Rows"), **members},
    }
    result = {
        "type": "object",
        "required": ["model", "version", "rows"],
        "properties": {
            "model": {"type": "string"},
            "version": {"type": "string"},
            "rows": {"type": "array", "items": _ref(answer)},
        },
    }
    return {
        "operationId": name,
        "summary": about,
        "parameters": _parameters(options),
        "requestBody": _body({"anyOf": [object_, _ref("Rows")]}, limits),
        "responses": {"200": {"description": "One answer for each row, in their order.",
                              "content": _json(result)}, **_errors()},
    }  # fmt: skip


def _learn(limits: Limits) -> dict[str, Any]:
    object_ = {
        "type": "object",
        "required": ["rows", "labels"],
        "additionalProperties": False,
        "properties": {
            "model": _OPTIONS["model"][0],
            "rows": {"type": "array", "minItems": 1, "items": _ref("NamedRow")},
            "labels": {"type": "array", "items": _LABEL},
            "weights": {"type": "array", "items": {"type": "number", "minimum": 0}},
        },
    }
    result = {
        "type": "object",
        "required": ["model", "learned", "rows"],
        "properties": {"model": {"type": "string"}, "learned": _COUNT, "rows": _COUNT},
    }
    answered = {"description": "The rows are learned and stored.", "content": _json(result)}
    return {
        "operationId": "learn",
        "summary": "Learn labelled rows. The answer comes when they are stored on the disk.",
        "parameters": _parameters(("model", "format")),
        "requestBody": _body(object_, limits),
        "responses": {"200": answered, **_errors()},
    }


def _parameters(options: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": False, "description": _OPTIONS[name][1],
         "schema": _OPTIONS[name][0]}
        for name in options
    ]  # fmt: skip


def _body(schema: dict[str, Any], limits: Limits) -> dict[str, Any]:
    lines = {"type": "string", "description": "Lines of svmlight or VW text."}
    return {
        "required": True,
        "description": f"At most {limits.body:,} bytes and {limits.rows:,} rows.",
        "content": {**_json(schema), "text/plain": {"schema": lines}},
    }


def _get(
    name: str, about: str, schema: dict[str, Any] | None, open_to_all: bool = False
) -> dict[str, Any]:
    content = {"text/plain": {"schema": {"type": "string"}}} if schema is None else _json(schema)
    found: dict[str, Any] = {
        "operationId": name,
        "summary": about,
        "responses": {"200": {"description": about, "content": content}, **_errors()},
    }
    return found | ({"security": []} if open_to_all else {})


def _errors() -> dict[str, Any]:
    content = _json(_ref("Error"))
    return {
        "4XX": {"description": "The request is wrong: what, and where.", "content": content},
        "5XX": {"description": "The server cannot answer now.", "content": content},
    }


def _schemas(limits: Limits) -> dict[str, Any]:
    named = {"type": "object", "additionalProperties": _VALUE,
             "description": "Values by name of the feature: numbers, true and false, strings, "
             "lists of words, or null."}  # fmt: skip
    numbers = {"type": "array", "items": {"type": ["number", "boolean"]},
               "description": "One number for each column of the model."}  # fmt: skip
    either = [
        {"type": "array", "items": _ref("NamedRow")},
        {"type": "array", "items": _ref("NumberRow")},
    ]
    rows = {"type": "array", "minItems": 1, "maxItems": limits.rows, "anyOf": either}
    unknown = {"type": "array", "items": {"type": "string"},
               "description": "Features of the row that have no weight in the model."}  # fmt: skip
    classes = _listed({"label": _LABEL, "raw": _NUMBER, "probability": _NUMBER}, "label", "raw")
    prediction = _object(
        {
            "label": _LABEL,
            "labels": {"type": "array", "items": _LABEL},
            "value": _NUMBER,
            "probability": {"type": "object", "additionalProperties": _NUMBER},
            "raw": {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER}]},
            "top": classes,
            "unknown_features": unknown,
            "unknown_count": _COUNT,
        }
    )
    part = {"feature": {"type": ["string", "integer"]}, "value": _NUMBER, "weight": _NUMBER,
            "contribution": _NUMBER}  # fmt: skip
    explanation = {
        "prediction": {"anyOf": [_LABEL, {"type": "array", "items": _LABEL}]},
        "label": _LABEL,
        "raw": _NUMBER,
        "intercept": _NUMBER,
        "contributions": _listed(part, *part),
        "others": _NUMBER,
        "others_count": _COUNT,
        "unknown_features": unknown,
        "unknown_count": _COUNT,
    }
    text, optional = {"type": "string"}, {"type": ["string", "null"]}
    model = _object(
        {
            "name": text, "version": text, "loss": text, "rule": optional,
            "task": {"enum": ["classification", "regression"]},
            "nonzeros": _COUNT, "features": {"type": ["integer", "null"]},
            "named": {"type": "boolean"}, "multilabel": {"type": "boolean"}, "loaded": _NUMBER,
            "classes": {"type": "array", "items": _LABEL}, "class_count": _COUNT,
        },
        "name", "version", "task", "loss", "nonzeros",
    )  # fmt: skip
    state = {"status": {"enum": ["ok", "old"]}, "version": text, "error": text}
    health = {
        "status": {"enum": ["ok", "degraded", "stopping"]},
        "models": {"type": "object", "additionalProperties": _object(state, "status", "version")},
    }
    error = {"message": text, "row": _COUNT, "line": _COUNT, "column": _COUNT, "feature": text,
             "option": text}  # fmt: skip
    return {
        "NamedRow": named,
        "NumberRow": numbers,
        "Rows": rows,
        "Prediction": prediction,
        "Explanation": _object(explanation, *_EXPLAINED),
        "Model": model,
        "Models": _object({"models": {"type": "array", "items": _ref("Model")}}, "models"),
        "Health": _object(health, "status", "models"),
        "Error": _object({"error": _object(error, "message")}, "error"),
    }


def _object(members: dict[str, Any], *required: str) -> dict[str, Any]:
    found = {"type": "object", "additionalProperties": False, "properties": members}
    return found | ({"required": list(required)} if required else {})


def _listed(members: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "array", "items": _object(members, *required)}
