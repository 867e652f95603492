"""The page `/docs`: what can be asked, with examples. It needs no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from thresher.report.page import Section, page
from thresher.report.tables import table
from thresher.serving.models import ServedModel

_TURN = " \\\n  "  # goes on in the next line of a shell


def docs_page(description: dict[str, Any], models: Sequence[ServedModel], address: str) -> str:
    """Return the page.

    Parameters
    ----------
    description : dict
        Of the API; see `openapi.description`.
    models : sequence of ServedModel
    address : str
        The address of the server, as the reader has it.
    """
    sections = [Section("Models", _models(models))]
    token = "securitySchemes" in description["components"]
    for path, methods in description["paths"].items():
        for method, about in methods.items():
            body = f"<p>{escape(about['summary'])}</p>"
            if about.get("parameters"):
                body += _options(about["parameters"])
            body += _example(address, path, method, token)
            sections.append(Section(f"{method.upper()} {path}", body))
    lead = "All requests and answers are described in /openapi.json, in OpenAPI 3.1."
    return page("Thresher: served models", sections, lead)


def _models(models: Sequence[ServedModel]) -> str:
    rows = [
        [one.name, one.version, one.about()["task"], one.model.loss, one.model.nnz]
        for one in models
    ]
    return table(["name", "version", "task", "loss", "nonzero weights"], rows)


def _options(options: Sequence[dict[str, Any]]) -> str:
    return table(["option", "meaning"], [[one["name"], one["description"]] for one in options])


def _example(address: str, path: str, method: str, token: bool) -> str:
    words = ["curl"]
    if token and path != "/healthz":
        words.append("-H 'Authorization: Bearer TOKEN'")
    if method == "post":
        asked: dict[str, Any] = {"rows": [{"colour": "red", "price": 12.5}]}
        if path == "/learn":
            asked["labels"] = [1]
        words.append("-H 'Content-Type: application/json'")
        words.append(f"-d '{json.dumps(asked)}'")
    words[0] += f" {address}{path}"
    return f"<pre>{escape(_TURN.join(words))}</pre>"
