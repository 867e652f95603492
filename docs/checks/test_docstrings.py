"""Docstrings of public names have the form of numpydoc."""

import importlib
import re

from numpydoc.validate import validate

from html_pages import DOCS

# What our docstrings leave out on purpose: sections without content for the reader, parameters of
# results that no user makes, the order of keyword-only parameters, and words that begin with the
# name of a variant.
LEFT_OUT = {"ES01", "EX01", "PR01", "PR03", "PR06", "PR07", "PR08", "RT01", "RT03", "SA01"}


def names() -> list[str]:
    """Return the names of docs/api that can be called."""
    found = []
    for page in sorted((DOCS / "api").glob("*.rst")):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.removeprefix(".. currentmodule:: ")
            elif module and re.fullmatch(r"   \w+", line):
                found.append(f"{module}.{line.strip()}")
    return found


def test_form() -> None:
    wrong = []
    for name in names():
        module, _, last = name.rpartition(".")
        if callable(getattr(importlib.import_module(module), last)) and last != "Words":
            errors = validate(name)["errors"]
            wrong += [(name, code, text) for code, text in errors if code not in LEFT_OUT]
    assert wrong == []
