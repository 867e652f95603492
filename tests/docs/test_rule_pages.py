"""Every rule has a page; its table lists the parameters of the estimators with their defaults."""

import inspect
import re
import runpy
from pathlib import Path

import pytest

import thresher
from thresher.rules import RULES

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "rules"


def page_of(rule):
    return (FOLDER / f"{rule}.md").read_text(encoding="utf-8")


def table_of(page, name):
    """Return the rows of a generated table, as lists of cells."""
    text = re.search(rf"<!-- {name} -->\n(.*?)<!-- end of {name} -->", page, re.S)[1]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_every_rule_has_a_page_and_a_picture():
    assert {path.stem for path in FOLDER.glob("*.md")} == {"index", *RULES}
    assert {path.stem for path in FOLDER.glob("*.png")} == set(RULES)
    index = page_of("index")
    for rule in RULES:
        assert f"({rule}.md)" in index
        assert f"\n{rule}\n" in index


@pytest.mark.parametrize("rule", RULES)
def test_the_parameters_are_those_of_the_estimators(rule):
    rows = {cells[0].strip("`"): cells for cells in table_of(page_of(rule), "parameters")}
    estimators = {t: getattr(thresher, name) for t, name in RULES[rule].estimators.items()}
    for task, estimator in estimators.items():
        signature = inspect.signature(estimator).parameters
        of_task = {n for n in rows if "Classifiers only." not in rows[n][3] or task == "classifier"}
        assert of_task == set(signature)
        for name in of_task:
            stated = rows[name][2]
            if ";" in stated:
                stated = next(part for part in stated.split("; ") if part.endswith(f"({task})"))
            assert stated.split(" (")[0].strip() == f"`{signature[name].default!r}`", (name, stated)
    for name, parameter in RULES[rule].parameters.items():
        assert rows[name][1].strip("`") == parameter.symbol


@pytest.mark.parametrize("rule", RULES)
def test_the_parts_of_a_page(rule):
    page = page_of(rule)
    headings = re.findall(r"^## (.*)$", page, re.M)
    assert headings == [
        *("Paper", "The update", "When it is good, and when not", "A picture", "Parameters"),
        *("In Python", "More"),
    ]
    assert f"]({rule}.png)" in page
    assert f"thresher train --rule {rule}`" in " ".join(page.split())
    for name in RULES[rule].estimators.values():
        assert f"`{name}`" in page


def test_the_tables_are_current():
    make = runpy.run_path(str(FOLDER / "make.py"))
    for rule in RULES:
        assert make["filled"](rule, page_of(rule)) == page_of(rule), (
            f"docs/rules/{rule}.md is not current: python docs/rules/make.py tables"
        )
        assert make["SWEEPS"][rule].estimator in RULES[rule].estimators.values()


def test_figures_in_the_text_are_in_the_pages_that_it_names():
    """Numbers such as 644 of dorothea are in docs/rules.md, ratios such as 0.66 in defaults.md."""
    known = "".join((FOLDER.parent / name).read_text() for name in ("rules.md", "defaults.md"))
    checked = 0
    for rule in RULES:
        good = page_of(rule).split("## When it is good")[1].split("<!-- measured")[0]
        for number in re.findall(r"(?<![\w.=-])(\d+\.\d+|\d+,\d{3}|\d{3,})(?![\w.]*\])", good):
            plain = number.replace(",", "")
            rounded = re.findall(rf"{re.escape(number)}|{re.escape(plain)}", known)
            assert rounded, (rule, number)
            checked += 1
    assert checked > 10
