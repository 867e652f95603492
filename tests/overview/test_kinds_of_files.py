"""`thresher.look` over all kinds of files that people have."""

from __future__ import annotations

import json
import tarfile

import pytest

import thresher
from support.files_people_have import KINDS, all_kinds

_UNREAD = ("json_lines", "zip_archive")


@pytest.fixture(scope="module")
def looked(tmp_path_factory):
    """All kinds of files: the facts of the generator, and the look at the file."""
    found = {}
    for name in all_kinds():
        made = KINDS[name](tmp_path_factory.mktemp(name), seed=2)
        found[name] = (made, thresher.look(made.path))
    return found


@pytest.mark.parametrize("name", all_kinds())
def test_the_facts_are_found(looked, name):
    made, look = looked[name]
    facts = look.facts
    assert facts.rows.read == (0 if name in _UNREAD else made.rows)
    assert facts.label.task == made.task
    names = [one.name for one in facts.columns]
    kinds = {one.name: one.kind for one in facts.columns}
    for column, kind in made.columns.items():  # in a file without header, by their positions
        assert kinds[names[column] if isinstance(column, int) else column] == kind
    if made.format:
        assert facts.file.format == made.format
    if made.labels:
        assert {label for label, _ in facts.label.counts} == set(made.labels)
    if made.label is not None and made.rows:
        label = names[made.label] if isinstance(made.label, int) else made.label
        assert facts.label.columns == (label,)


@pytest.mark.parametrize("name", all_kinds())
def test_the_suggestion_has_the_right_options(looked, name):
    made, look = looked[name]
    assert [option for option in made.options if option not in look.command] == []
    known = {option.split()[0] for option in made.options} | {
        "--label", "--multiclass", "--dates", "--scale", "--text",
    }  # fmt: skip
    used = {word for word in look.command.split() if word.startswith("--")}
    assert used <= known, "an option that is not needed"
    if look.command:
        assert str(made.path) in look.command


@pytest.mark.parametrize("name", all_kinds())
def test_all_forms_can_be_made(looked, name):
    _, look = looked[name]
    assert max(len(line) for line in str(look).splitlines() if "/" not in line) <= 80
    again = json.loads(json.dumps(look.to_json(), allow_nan=False))
    assert again["suggestion"]["command"] == look.command
    assert look.html().startswith("<!DOCTYPE html>")
    assert look._repr_html_().startswith('<div class="thresher">')
    assert repr(look).startswith("<Look: ")


def test_files_without_trouble_get_a_plain_command(looked):
    for name in ("byte_order_mark", "crlf", "tab_separated", "svmlight", "vw_with_namespaces"):
        made, look = looked[name]
        assert look.command == f"thresher train {made.path} -m model.thresher"
        assert not [one for one in look.findings if one.serious]


def test_numbers_in_the_findings(looked):
    def finding(name, kind):
        made, look = looked[name]
        return made, next(one for one in look.findings if one.name == kind)

    made, order = finding("texts_sorted_by_label", "order")
    assert f"{made.more['longest_run']} rows of 1" in order.what
    made, bad = finding("ragged_lines", "bad lines")
    assert f"{made.more['bad_lines']} lines" in bad.what
    assert f"{made.path}:{made.more['first_bad_line']}: expected 4 cells" in bad.what
    made, bad = finding("svmlight_with_bad_lines", "bad lines")
    assert f"{made.path}:{made.more['first_bad_line']}:" in bad.what
    made, nul = finding("nul_bytes", "nul")
    assert nul.what == f"{made.more['nul']} NUL bytes; the first is in {made.path}:11"
    made, mixed = finding("mixed_types", "mixed")
    assert f"{made.more['words']} words" in mixed.what
    made, copies = finding("duplicated_rows", "copies")
    assert copies.what.startswith(f"{made.more['duplicates']} of {made.rows} rows")
    made, missing = finding("missing_values", "missing")
    for column in ("a", "b", "city"):
        assert f"{column} ({made.more['missing'][column]})" in missing.what
    made, scale = finding("columns_of_different_scale", "scale")
    assert all(column in scale.what for column in made.more["odd"])


def test_facts_of_files(looked):
    made, look = looked["missing_values"]
    found = {one.name: one.missing for one in look.facts.columns}
    assert made.more["missing"].items() <= found.items()
    made, look = looked["svmlight"]
    assert look.facts.features.nonzeros == made.more["nonzeros"]
    assert look.facts.features.count == look.facts.features.largest == 200
    made, look = looked["vw_with_namespaces"]
    assert {name for name, _, _ in look.facts.features.namespaces} == {"words", "user"}
    assert look.facts.features.top[0] == ("user^age", made.rows)
    for name, (made, look) in looked.items():
        if "compression" in made.more:
            assert look.facts.file.compression == made.more["compression"], name
        if "encoding" in made.more:
            assert look.facts.file.encoding == made.more["encoding"], name
        if "delimiter" in made.more:
            assert look.facts.file.layout.delimiter == made.more["delimiter"], name
    assert looked["byte_order_mark"][1].facts.file.bom
    assert looked["crlf"][1].facts.file.line_end == "\r\n"
    made, look = looked["multilabel_bars"]
    assert look.facts.label.separator == "|"
    assert look.facts.label.missing == made.more["without_labels"]


def test_other_formats_are_named_with_advice(looked, tmp_path):
    _, look = looked["json_lines"]
    (finding,) = look.findings
    assert "JSON lines" in finding.what
    assert "read_json" in finding.advice
    assert look.command == ""
    _, look = looked["zip_archive"]
    assert "zip archive" in look.findings[0].what
    with tarfile.open(tmp_path / "rows.tar.xz", "w:xz") as archive:
        archive.add(looked["header_only"][0].path, "rows.csv")
    (finding,) = thresher.look(tmp_path / "rows.tar.xz").findings
    assert "is an archive (tar), not" in finding.what
    assert finding.advice == "unpack it first"
    _, look = looked["empty_file"]
    assert [one.name for one in look.findings] == ["empty"]
    _, look = looked["header_only"]
    assert "has a header and no rows" in look.findings[0].what
