"""The tables of docs/coming_from name things that exist, here and in the other library."""

import ast
import importlib
import inspect
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import sklearn
import typer
from sklearn.utils.discovery import all_displays, all_estimators, all_functions

import thresher
from support.files import called, vw
from thresher.cli.app import app
from thresher.losses import canonical_loss
from thresher.rules import RULES

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "coming_from"
PEERS = json.loads((ROOT / "tests" / "fixtures" / "peer_names.json").read_text())
COMMANDS = typer.main.get_command(app).commands
# Names in calls that stand for the reader's rows, paths and numbers.
PLACEHOLDERS = {
    *("X", "X_valid", "y", "y_valid", "x", "w", "a", "c", "f", "i", "n", "r", "s", "classifier"),
    *("clf", "dataset", "desired_dist", "frame", "grid", "metric", "model", "models", "passes"),
    *("path", "policy", "row", "rows", "similarity", "source", "splitter"),
}


def tables(page):
    """Yield the header and the rows of each table of a page, as lists of cells."""
    text = re.sub(r"```.*?```", "", (FOLDER / f"{page}.md").read_text(), flags=re.S)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in block.splitlines()]
        yield lines[0], lines[2:]


def spans(cell):
    """Return the code in a cell."""
    return re.findall(r"`([^`]+)`", cell)


# ---- names of ours ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def objects():
    """Names that stand for fitted objects in the tables."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X[:, 0] > 0
    clf = thresher.FTRLClassifier(passes=1, random_state=0).fit(X, y)
    path = thresher.SparsityPath(clf, gravities=[0.1, 1.0], cv=2).fit(X, y)
    search = thresher.OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=2).fit(X, y)
    found = {"clf": clf, "model": clf.model_, "path": path, "search": search}
    return {**dict(all_estimators()), **dict(all_functions()), **dict(all_displays()), **found}


def classes_in(text):
    return [getattr(thresher, name) for name in re.findall(r"\b\w+(?:Classifier|Regressor)\b", text)
            if hasattr(thresher, name)]  # fmt: skip


def check_parameter(thing, name, value):
    """Assert that a parameter exists and, if it is one of a rule, that it takes the value."""
    assert name in inspect.signature(thing).parameters, f"{thing} has no {name}"
    rule = RULES.get(getattr(thing, "rule", None))
    if rule is None or not isinstance(value, ast.Constant):
        return
    value = canonical_loss(value.value) if name == "loss" else value.value
    if name == "loss":
        assert value in rule.parameters["loss"].choices
    else:
        assert rule.parameters[name].accepts(value), (thing, name, value)


def resolve(node, names):
    """Return what an expression stands for; None for the result of a call or a placeholder."""
    if isinstance(node, ast.Name):
        if node.id in names:
            return names[node.id]
        if node.id in PLACEHOLDERS:
            return None
        assert hasattr(thresher, node.id), f"no such name: {node.id}"
        return getattr(thresher, node.id)
    if isinstance(node, ast.Attribute):
        value = resolve(node.value, names)
        assert value is not None, ast.unparse(node)
        if value is thresher or inspect.ismodule(value) or hasattr(value, node.attr):
            return getattr(value, node.attr)
        raise AssertionError(f"{ast.unparse(node)} does not exist")
    if isinstance(node, ast.Call):
        function = resolve(node.func, names)
        for keyword in node.keywords:
            check_parameter(function, keyword.arg, keyword.value)
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            resolve(argument, names)
        return None
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            resolve(child, names)
    return None


def check_command(line):
    """Assert that a command, its options and its rule exist."""
    words = shlex.split(line)
    assert words[0] == "thresher"
    options = {o for p in COMMANDS[words[1]].params for o in (*p.opts, *p.secondary_opts)}
    given = [word for word in words[2:] if word.startswith("-") and len(word) > 1]
    assert not set(given) - options, set(given) - options
    if "--rule" in words:
        rule = RULES[words[words.index("--rule") + 1]]
        own = {o.removeprefix("--").replace("-", "_") for o in given} & every_parameter()
        assert own <= set(rule.parameters) | {"seed"}, own


def every_parameter():
    return {name for rule in RULES.values() for name in rule.parameters}


def check_ours(span, header, row, names):
    """Assert that a piece of code in a column of ours is right."""
    if span.startswith("thresher "):
        check_command(span)
    elif span.startswith("-"):
        check_command(f"{re.search('thresher [a-z]+', header)[0]} {span}")
    elif re.match(r"[a-z_0-9]+=", span):
        things = classes_in(row) or classes_in(header)
        assert things, f"whose parameter is {span}?"
        for thing in things:
            for keyword in ast.parse(f"f({span})", mode="eval").body.keywords:
                check_parameter(thing, keyword.arg, keyword.value)
    else:
        resolve(ast.parse(span, mode="eval").body, names)


# ---- names of the others ------------------------------------------------------------------------


def check_sklearn(span, names):
    if span.startswith("joblib"):
        assert hasattr(importlib.import_module("joblib"), re.match(r"joblib\.(\w+)", span)[1])
    else:
        node = ast.parse(span, mode="eval").body
        first = next(n for n in ast.walk(node) if isinstance(n, ast.Name))
        assert first.id in names, f"scikit-learn {sklearn.__version__} has no {first.id}"
        resolve(node, names)


def check_vw(span, names):
    words = shlex.split(span)
    assert words[0] == "vw" or span.startswith("-") or span.isdigit()
    given = {word for word in words if re.match(r"--?[a-z]", word)}
    assert not given - set(PEERS["vowpalwabbit"]["options"])


def check_river(span, names):
    known = PEERS["river"]["names"]
    name, member = re.match(r"[\w.]+", span)[0], None
    if name not in known:
        name, _, member = name.rpartition(".")
    assert name in known, span
    given = {k.arg for n in ast.walk(ast.parse(span)) if isinstance(n, ast.Call) for k in n.keywords
             if ast.unparse(n.func) == name}  # fmt: skip
    assert given | ({member} if member else set()) <= set(known[name])


def check_glmnet(span, names):
    known = PEERS["glmnet"]["names"]
    if "(" in span:
        function = span.partition("(")[0]
        function = {"plot": "plot.cv.glmnet"}.get(function, function)
        if function in ("predict", "coef"):
            function += ".glmnet"
        given = set(re.findall(r"([a-z.]+) = ", span))
        assert function == "saveRDS" or given <= set(known[function])
    else:
        assert span.removeprefix("fit$") in known["cv"] + known["fit"]


PAGES = {
    "scikit_learn": ("scikit-learn", check_sklearn),
    "vowpal_wabbit": ("vw", check_vw),
    "river": ("river", check_river),
    "glmnet": ("glmnet", check_glmnet),
}


@pytest.mark.parametrize("page", PAGES)
def test_all_names_in_the_tables_exist(page, objects):
    there, check_theirs = PAGES[page]
    checked = 0
    for header, rows in tables(page):
        for cells in rows:
            assert len(cells) == len(header), cells
            if header[0] == there:
                for span in spans(cells[0]):
                    check_theirs(span, objects)
                for span in spans(cells[1]):
                    if span.startswith("{"):
                        ast.literal_eval(span)
                    else:
                        check_ours(span, header[1], cells[-1], objects)
                        checked += 1
            for span in spans(cells[-1]):
                if span.startswith(("thresher", "--", *thresher.__all__)) and header[0] != there:
                    with_command = span.replace("thresher.", "")
                    if not span.startswith("--") or there != "vw":
                        check_ours(with_command, "thresher train", "", objects)
    assert checked > 25


def test_the_overview_lists_all_pages():
    text = (FOLDER / "index.md").read_text()
    assert set(re.findall(r"\((\w+)\.md\)", text)) == set(PAGES)
    assert {path.stem for path in FOLDER.glob("*.md")} == {"index", *PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_defaults_in_the_tables_are_ours(page):
    for header, rows in tables(page):
        for cells in rows:
            stated = re.search(r"default here: ([\d.]+\d|\d)", cells[-1])
            if stated is None:
                continue
            name = re.search(r"[a-z_0-9]+", cells[1])[0]
            rule = RULES["ftrl"]
            for thing in classes_in(header[1]):
                rule = RULES[thing.rule]
            if name not in rule.parameters:
                rule = RULES["truncated-gradient"]
            parameter = rule.parameters[name]
            value = parameter.auto if parameter.default == "auto" else parameter.default
            assert value == float(stated[1]), (cells, value)


def test_versions_in_the_pages_are_those_of_the_recorded_names():
    for page, library in (("vowpal_wabbit", "vowpalwabbit"), ("river", "river")):
        assert PEERS[library]["version"] in (FOLDER / f"{page}.md").read_text()
    major, rest = PEERS["glmnet"]["version"].rsplit(".", 1)  # R writes 4.1.6 for 4.1-6
    assert f"glmnet {major}-{rest}" in (FOLDER / "glmnet.md").read_text()


def test_the_commands_of_a_day_with_vw_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("rows.vw", "new.vw", "day2.vw")):
        vw(tmp_path / name, rows=150, seed=seed)
    (tmp_path / "rows.csv").write_text("rooms,price\n" + "2,0\n4,1\n3,1\n1,0\n" * 20)
    _, rows = next(tables("vowpal_wabbit"))
    commands = [spans(cells[1])[0] for cells in rows]
    assert len(commands) == 13
    for command in commands:
        if "serve" in command:  # it would not end; tests/serving tests it
            continue
        called("train", "rows.vw", "-m", "m.thresher", "--keep-state", "--quiet")
        called(*shlex.split(command)[1:], "--quiet" if "inspect" not in command else "--json")


def test_the_commands_of_the_pages_give_the_margins_of_vw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (FOLDER / "vowpal_wabbit.md").read_text()
    rows = re.search(r'>>> rows = """(.*?)\.\.\. """', text, re.S)[1]
    (tmp_path / "ads.vw").write_text(rows.replace("... ", ""))
    commands = re.findall(r"^\$ (thresher .*(?:\n {4}.*)*)", text, re.M)
    assert len(commands) == 1
    for command in commands:
        called(*shlex.split(command.replace("\\\n", ""))[1:])
    called("predict", "ads.thresher", "ads.vw", "--as", "raw", "-o", "raw.txt")
    margins = [
        float(line.split()[0]) for line in (tmp_path / "raw.txt").read_text().split("\n")[:8]
    ]
    stated = json.loads(re.search(r"vw_final = (\[.*\])", text)[1])
    np.testing.assert_allclose(margins, stated, atol=1e-5)
