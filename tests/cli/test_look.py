"""`thresher look`."""

import json
import signal
import subprocess
import time

import pytest

from support.files import THRESHER, called, thresher
from support.files_people_have import KINDS, all_kinds
from support.pages import parsed

UNREAD = ("empty_file", "header_only", "json_lines", "zip_archive")


@pytest.mark.parametrize("name", all_kinds())
def test_every_kind_of_file(tmp_path, name):
    made = KINDS[name](tmp_path)
    told = called("look", made.path).stdout
    assert str(made.path) in told.replace("\n  ", "")
    command = told.rpartition("Suggested command\n")[2].replace("\\\n", " ")
    if name in UNREAD:
        assert "Suggested command" not in told
    else:
        shown = " ".join(command.split())
        assert [option for option in made.options if option not in shown] == []


# Kinds whose suggestion has only options that train has had for long.
@pytest.mark.parametrize(
    "name",
    ["label_tab_text", "label_tab_text_with_quotes", "aligned_by_spaces", "csv_without_header",
     "texts_sorted_by_label", "numbers_sorted_by_label", "semicolon_csv", "text_column",
     "no_usual_label_name", "id_columns", "ragged_lines", "svmlight_from_zero", "vw_gzip_classes",
     "svmlight_multilabel", "svmlight_regression", "dates", "byte_order_mark", "duplicated_rows"],
)  # fmt: skip
def test_the_suggested_command_trains(tmp_path, name):
    made = KINDS[name](tmp_path)
    command = json.loads(called("look", made.path, "--json").stdout)["suggestion"]["command"]
    words = command.split()
    assert words[:2] == ["thresher", "train"]
    called(*words[1:], "-m", tmp_path / "m.thresher", "--quiet")
    assert (tmp_path / "m.thresher").exists()


def test_text_fits_80_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in all_kinds():
        made = KINDS[name](tmp_path)
        told = called("look", made.path.name).stdout
        assert max(map(len, told.splitlines())) <= 80, name


def test_json_has_all_facts(tmp_path):
    made = KINDS["missing_values"](tmp_path)
    facts = json.loads(called("look", made.path, "--json").stdout)
    assert set(facts) == {
        "name", "files", "rows", "columns", "features", "label", "duplicates", "bad_lines",
        "findings", "suggestion", "version",
    }  # fmt: skip
    assert facts["rows"] == {"read": 600, "total": 600, "exact": True}
    assert facts["files"][0]["delimiter"] == ","
    assert facts["label"]["task"] == "two classes"
    (finding,) = (one for one in facts["findings"] if one["name"] == "missing")
    assert finding["options"] == ["--missing indicator"]


def test_page(tmp_path):
    made = KINDS["text_column"](tmp_path)
    done = called("look", made.path, "--html", tmp_path / "look.html")
    assert done.stderr == f"page: {tmp_path}/look.html\n"
    parsed((tmp_path / "look.html").read_text())
    quiet = called("look", made.path, "--html", tmp_path / "look.html", "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    before = made.path.read_bytes()
    told = called("look", made.path, "--html", made.path, code=2).stderr
    assert "is an input file" in told
    assert made.path.read_bytes() == before


def test_standard_input(tmp_path):
    made = KINDS["label_tab_text"](tmp_path)
    told = called("look", "-", stdin=made.path.read_bytes()).stdout
    assert "600 rows; 2 columns: 1 category, 1 text" in told
    assert "thresher train - -m model.thresher" in " ".join(told.replace("\\", " ").split())


def test_options(tmp_path):
    made = KINDS["numbers_without_header"](tmp_path, rows=20_000)
    told = called("look", made.path, "--rows", 9000, "--label", "-1").stdout
    assert "the first 9,000 rows were read of about" in told
    assert "--label -1" in told
    told = called("look", made.path, "--all", "--header").stdout
    assert "19,999 rows" in told
    told = called("look", made.path, "--delimiter", "tab").stdout
    assert "separated by tab" in " ".join(told.split())  # a long path wraps the line
    assert "not both" in called("look", made.path, "--all", "--rows", 5, code=2).stderr
    assert "one character" in called("look", made.path, "--delimiter", "ab", code=2).stderr
    assert "no such file" in called("look", tmp_path / "none.csv", code=1).stderr
    assert "is a folder" in called("look", tmp_path, code=2).stderr


def test_ctrl_c_ends_it_cleanly(tmp_path):
    slow = f"while true; do echo '1 1:1 2:{'3' * 5}'; sleep 0.01; done"
    feeder = subprocess.Popen(["sh", "-c", slow], stdout=subprocess.PIPE)
    process = subprocess.Popen(
        [*THRESHER, "look", "-"], stdin=feeder.stdout, stderr=subprocess.PIPE, text=True
    )
    try:
        time.sleep(3.0)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[1] == "interrupted\n"
        assert process.returncode == 130
    finally:
        feeder.kill()
        feeder.stdout.close()
        feeder.wait()


def test_the_help_names_it():
    assert "look" in thresher("--help").stdout
    assert "--rows" in thresher("look", "--help").stdout
