"""The reference of the site lists every public name once, and no other."""

import importlib
import re
from pathlib import Path

import thresher

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "api"
SOURCES = Path(thresher.__file__).parent
# Modules whose names are parts of others, not for users.
INTERNAL = {"cli", "data", "estimators", "export", "model", "progress", "report", "rules"}
INTERNAL |= {"overview", "printable", "training"}


def listed():
    """Return module and name of each entry, in order."""
    found = []
    for page in sorted(FOLDER.glob("*.rst")):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.removeprefix(".. currentmodule:: ")
            elif module and re.fullmatch(r"   \w+", line) and page.stem != "index":
                found.append((module, line.strip()))
    return found


def public_modules():
    """Return the modules for users: those with `__all__` that are not internal."""
    paths = [*SOURCES.glob("*.py"), *SOURCES.glob("*/__init__.py")]
    names = {path.stem if path.stem != "__init__" else path.parent.name for path in paths}
    for name in sorted(names - INTERNAL - {"thresher"}):
        if not name.startswith("_") and hasattr(
            importlib.import_module(f"thresher.{name}"), "__all__"
        ):
            yield name


def test_every_entry_exists_once():
    entries = listed()
    assert len(entries) == len(set(entries)) > 100
    things = [id(getattr(importlib.import_module(module), name)) for module, name in entries]
    assert len(things) == len(set(things))


def test_no_public_name_is_missing():
    entries = {id(getattr(importlib.import_module(m), n)) for m, n in listed()}
    modules = {"thresher", *(f"thresher.{name}" for name in public_modules())}
    assert len(modules) > 12
    for module in modules:
        home = importlib.import_module(module)
        for name in home.__all__:
            thing = getattr(home, name)
            if (
                name != "__version__"
                and not hasattr(thing, "__path__")
                and not hasattr(thing, "__spec__")
            ):
                assert id(thing) in entries, f"{module}.{name} is in no page of docs/api"


def test_the_index_lists_all_pages():
    text = (FOLDER / "index.rst").read_text(encoding="utf-8")
    pages = {page.stem for page in FOLDER.glob("*.rst")} - {"index"}
    assert set(re.findall(r"^   (\w+)$", text, re.M)) == pages


def test_entries_have_docstrings():
    for module, name in listed():
        thing = getattr(importlib.import_module(module), name)
        if callable(thing):
            assert (thing.__doc__ or "").strip(), f"{module}.{name}"
