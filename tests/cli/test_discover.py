"""`thresher discover`: files, pipes, bad options, interruptions, and what is written."""

import csv
import itertools
import json
import os
import signal
import subprocess

import numpy as np
import pytest

import thresher
from support.files import THRESHER, called, svmlight, vw
from support.pages import parsed, section
from support.slices import sliced
from thresher.data.source import Source

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("discover")
    svmlight(folder / "rows.svm", rows=1500)
    svmlight(folder / "classes.svm", rows=1500, classes=(1, 2, 5))
    vw(folder / "rows.vw", rows=1500)
    svmlight(folder / "noise.svm", rows=1500)
    lines = (folder / "noise.svm").read_text().splitlines()
    labels = RNG.permutation([line.split()[0] for line in lines])
    (folder / "noise.svm").write_text(
        "".join(f"{y} {line.partition(' ')[2]}\n" for y, line in zip(labels, lines, strict=True))
    )
    a, b = RNG.normal(size=(2, 800))
    price = 3 * a + RNG.normal(size=800)
    rows = "".join(f"{p:.3f},{x:.3f},{z:.3f}\n" for p, x, z in zip(price, a, b, strict=True))
    (folder / "houses.csv").write_text("price,size,noise\n" + rows)
    return folder


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def found(path):
    return json.loads(path.read_text())


# ---- results -------------------------------------------------------------------------------------


def test_table_checks_and_sentence_of_an_svmlight_file(folder):
    done = called("discover", folder / "rows.svm", "--why", 1, "--why", 9999)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["feature", "direction", "rows", "z", "q", "weight"]
    first = lines[1].split()
    assert first[1] == "raises"
    assert int(first[0]) % 3 == 1  # numbers as in the file: features 1, 4, 7, ... raise the score
    assert float(first[5]) > 0
    assert "... and " in done.stdout
    assert " of 60 features are selected; expected false (no effect given" in done.stdout
    assert "checked, and fine:" in done.stdout
    assert "  order of labels     rows were shuffled" in done.stdout
    checked, _, missing = done.stdout.partition("\nnot checked:\n")
    assert "correlated columns" not in checked
    assert "  correlated columns  the rows are not in memory" in missing
    assert "1,500 rows; crossfit with 5 folds" in done.stdout
    assert "\n1: in " in done.stdout
    assert "raises the odds of 1 beyond what the other features explain" in done.stdout
    assert "\n9999: no row has a nonzero value of it. 60 features occur." in done.stdout
    names = called("discover", folder / "rows.vw", "--quiet", "--why", "w3", "--why", "xyz")
    assert "w3: no row has a nonzero value of it. Did you mean word^w3?" in names.stdout
    assert "xyz: no row has a nonzero value of it. 41 features occur." in names.stdout


def test_json_csv_page_and_model_agree(folder, tmp_path):
    files = [tmp_path / name for name in ("r.html", "r.json", "r.csv", "r.thresher")]
    html, data, table, model = files
    done = called(
        "discover", folder / "rows.vw", "--fdr", 0.05, "--html", html, "--json", data,
        "--csv", table, "-m", model,
    )  # fmt: skip
    assert all(f"-> {file}" in done.stdout for file in files)
    facts = found(data)
    assert facts["made_by"] == f"thresher {thresher.__version__}"
    assert facts["parameters"]["fdr"] == 0.05
    assert facts["form"] == "crossfit"
    assert (facts["n_rows"], facts["n_features_seen"]) == (1500, 41)
    assert facts["n_selected"] == len(facts["features"]) > 20
    assert facts["expected_false"] <= 0.05 * facts["n_selected"]
    assert {check["name"] for check in facts["checks"]} >= {"drift", "calibration", "near-copies"}
    names = [feature["feature"] for feature in facts["features"]]
    assert all(name.startswith("word^w") for name in names)
    for feature in facts["features"]:
        even = int(feature["feature"].removeprefix("word^w")) % 2 == 0
        assert feature["direction"] == ("raises" if even else "lowers")
    rows = list(csv.DictReader(table.open()))
    assert [row["feature"] for row in rows] == names
    assert float(rows[0]["z"]) == facts["features"][0]["z"]
    learned = thresher.load(model)
    assert {feature.name for feature in learned.top(100)} == set(names)
    shown = called("predict", model, folder / "rows.vw").stdout.splitlines()
    predicted = [line.split()[0] for line in shown]  # the tag of the row follows
    truth = [line.split()[0] for line in (folder / "rows.vw").read_text().splitlines()]
    assert np.mean([a == b for a, b in zip(predicted, truth, strict=True)]) > 0.8
    page = html.read_text()
    assert names[0] in section(page, "features")
    assert "thresher discover" in section(page, "how-it-was-made")
    assert "rows.vw" in parsed(page).findtext(".//h1")


def test_too_many_features_for_a_model(folder, tmp_path, monkeypatch):
    """The other files are written, and the message says that there is no model."""
    monkeypatch.setattr("thresher.discovery.decision.MOST", 3)
    outputs = ("--html", tmp_path / "h", "--json", tmp_path / "j", "--csv", tmp_path / "c")
    done = called("discover", folder / "rows.vw", *outputs, "-m", tmp_path / "m", code=1)
    assert left(tmp_path) == ["c", "h", "j"]
    assert f"no model is written to {tmp_path / 'm'}: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "model ->" not in done.stdout
    assert f"JSON -> {tmp_path / 'j'}" in done.stdout
    assert found(tmp_path / "j")["n_selected"] > 3


def test_nothing_is_selected_without_signal(folder, tmp_path):
    done = called("discover", folder / "noise.svm", "--json", tmp_path / "r", "-m", tmp_path / "m")
    assert done.stdout.startswith("no feature is selected: the strongest one, ")
    assert "Either there is no signal, or there are too few rows to see it" in done.stdout
    assert found(tmp_path / "r")["features"] == []
    assert thresher.load(tmp_path / "m").nnz == 0
    top = called("discover", folder / "noise.svm", "--top", 3, "--csv", tmp_path / "c").stdout
    assert [line.split()[-1] for line in top.splitlines()[:4]] == ["selected", "no", "no", "no"]
    assert len((tmp_path / "c").read_text().splitlines()) == 4


def test_a_table_with_numbers_as_labels(folder, tmp_path):
    done = called("discover", folder / "houses.csv", "--label", "price", "--json", tmp_path / "r")
    assert done.stdout.splitlines()[1].split()[:2] == ["size", "raises"]
    assert "raises, lowers: the target" in done.stdout
    facts = found(tmp_path / "r")
    assert facts["task"] == "regression"
    assert [feature["feature"] for feature in facts["features"]] == ["size"]
    assert facts["features"][0]["weight"] == pytest.approx(3, abs=0.2)


def test_several_classes(folder):
    done = called("discover", folder / "classes.svm", "--top", 4)
    directions = [line.split()[1:3] for line in done.stdout.splitlines()[1:5]]
    assert all(what in ("raises", "lowers") for what, _ in directions)
    assert {label for _, label in directions} <= {"1", "2", "5"}
    assert "raises, lowers: the odds of a class" in done.stdout


def test_namespaces_are_selected_as_groups(folder, tmp_path):
    arguments = ("--group-namespaces", "--json", tmp_path / "r", "--html", tmp_path / "h")
    done = called("discover", folder / "rows.vw", *arguments, "--why", "age^years")
    assert "1 of 2 groups is selected, with 40 features" in done.stdout
    assert "Its group age is not selected; q of the group is " in done.stdout
    assert [group["group"] for group in found(tmp_path / "r")["selected_groups"]] == ["word"]
    assert "word" in section((tmp_path / "h").read_text(), "groups")
    done = called("discover", folder / "rows.svm", "--group-namespaces", code=2)
    assert "names" in done.stderr


def test_expected_false_instead_of_a_share(folder, tmp_path):
    called("discover", folder / "rows.vw", "--expected-false", 1, "--json", tmp_path / "r")
    facts = found(tmp_path / "r")
    assert facts["expected_false"] <= 1
    assert facts["parameters"]["expected_false"] == 1


def test_failed_checks_are_warnings(folder, tmp_path):
    rows = sorted((folder / "rows.svm").read_text().splitlines())  # -1 before 1
    (tmp_path / "sorted.svm").write_text("\n".join(rows) + "\n")
    arguments = ("discover", tmp_path / "sorted.svm", "--form", "stream")
    done = called(*arguments, "--html", tmp_path / "h")
    assert "warning: order of labels: neighbouring rows have similar labels" in done.stderr
    assert "order of labels" not in done.stdout
    assert "Warning: order of labels" in (tmp_path / "h").read_text()
    done = called(*arguments, "--quiet")
    assert "warning: order of labels" in done.stderr
    assert not done.stdout


def test_shuffle_is_for_sorted_files(folder, tmp_path):
    rows = sorted((folder / "rows.vw").read_text().splitlines())  # -1 before 1
    (tmp_path / "sorted.vw").write_text("\n".join(rows) + "\n")
    arguments = ("discover", tmp_path / "sorted.vw", "--json", tmp_path / "r")
    unshuffled = called(*arguments, "--no-shuffle")
    assert "--shuffle reads the rows in random order" in unshuffled.stderr
    done = called(*arguments, "-m", tmp_path / "m", "--html", tmp_path / "h")
    assert "order of labels" not in done.stderr
    names = {feature["feature"] for feature in found(tmp_path / "r")["features"]}
    assert all(name.startswith("word^w") for name in names)
    assert len(names) > 30
    assert {feature.name for feature in thresher.load(tmp_path / "m").top(100)} == names
    called("discover", tmp_path / "sorted.vw", "--shuffle", "--csv", tmp_path / "a", "--threads", 1)
    called("discover", tmp_path / "sorted.vw", "--shuffle", "--csv", tmp_path / "b", "--threads", 2)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    done = called("discover", "-", "--shuffle", code=2, stdin=(folder / "rows.vw").read_bytes())
    assert done.stderr == "--shuffle of standard input needs --cache FILE\n"


def test_results_do_not_depend_on_threads(folder, tmp_path):
    for threads in (1, 3):
        called(
            "discover", folder / "rows.vw", "--csv", tmp_path / f"{threads}", "--threads", threads
        )
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()


# ---- standard input ------------------------------------------------------------------------------


def test_standard_input_is_a_stream(folder, tmp_path):
    rows = (folder / "rows.vw").read_bytes()
    done = called("discover", "-", "--json", tmp_path / "r", "--why", "word^w2", stdin=rows)
    assert "stream: one reading" in done.stdout
    assert "\nword^w2: in " in done.stdout
    facts = found(tmp_path / "r")
    assert facts["form"] == "stream"
    assert all(feature["feature"].startswith("word^w") for feature in facts["features"])
    called("discover", folder / "rows.vw", "--form", "stream", "--csv", tmp_path / "file")
    called("discover", "-", "--csv", tmp_path / "pipe", stdin=rows)
    names = [list(csv.DictReader((tmp_path / name).open())) for name in ("file", "pipe")]
    assert [row["z"] for row in names[0]] == [row["z"] for row in names[1]]


def test_a_cache_makes_standard_input_readable_twice(folder, tmp_path):
    rows = (folder / "rows.vw").read_bytes()
    done = called("discover", "-", "--form", "joint", code=2, stdin=rows)
    assert done.stderr == (
        "two readings of standard input need --cache FILE; --form stream needs one reading\n"
    )
    done = called("discover", "-", "-m", tmp_path / "m", code=2, stdin=rows)
    assert "standard input needs --cache FILE" in done.stderr
    assert not left(tmp_path)
    cache = ("--cache", tmp_path / "rows.cache", "--quiet")
    called("discover", "-", *cache, "--csv", tmp_path / "a", "-m", tmp_path / "m", stdin=rows)
    called("discover", folder / "rows.vw", "--csv", tmp_path / "b", "--quiet")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_other_labels_from_standard_input(folder):
    rows = (folder / "classes.svm").read_bytes()
    done = called("discover", "-", code=1, stdin=rows)
    assert "--classes A,B,... for other classes, or --task regression" in done.stderr
    assert "--multiclass" not in done.stderr
    assert "odds of a class" in called("discover", "-", "--classes", "1,2,5", stdin=rows).stdout


# ---- bad options and input -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fdr", 0], "--fdr must be a number above 0 and at most 1; got 0.0"),
        (["--fdr", 0.1, "--expected-false", 2], "give --fdr or --expected-false, not both"),
        (["--expected-false", -1], "--expected-false must be a number above 0; got -1.0"),
        (["--form", "both"], "--form must be auto, crossfit, stream, joint; got 'both'"),
        (["--task", "both"], "--task must be auto, classification, regression; got 'both'"),
        (["--task", "regression", "--classes", "1,2"], "--classes cannot be used with --task"),
        (["--folds", 1], "--folds must be a whole number from 2 to 64; got 1"),
        (["--redraws", 1], "--redraws must be a whole number from 2 to 1000; got 1"),
        (["--memory", "many"], "--memory must be a size"),
        (["--why", "cat"], "the features of "),
        (["--form", "joint", "--group-namespaces"], "--form joint drops single features, and"),
        (["--resume"], "--resume needs --checkpoint, the file to continue from"),
        (["--every", "5s"], "--every needs --checkpoint FILE"),
        (["--top", 0], "--top"),
        (["--json", "{rows}"], "is an input file: it cannot be an output too"),
        (["--json", "{out}", "--csv", "{out}"], "is also the file of --json"),
    ],
)
def test_bad_options_are_refused_before_rows_are_read(folder, tmp_path, options, message):
    paths = {"{rows}": folder / "rows.svm", "{out}": tmp_path / "out"}
    options = [paths.get(option, option) for option in options]
    before = (folder / "rows.svm").read_bytes()
    done = called("discover", folder / "rows.svm", *options, code=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
    assert not left(tmp_path)
    assert (folder / "rows.svm").read_bytes() == before


@pytest.mark.parametrize("text", ["", "1 1:x\n", "1 1:1\n" * 60])
def test_bad_rows_write_nothing(tmp_path, text):
    (tmp_path / "rows.svm").write_text(text)
    outputs = ("--html", tmp_path / "h", "--json", tmp_path / "j", "-m", tmp_path / "m")
    done = called("discover", tmp_path / "rows.svm", "--format", "svmlight", *outputs, code=1)
    assert len(done.stderr.splitlines()) == 1
    assert left(tmp_path) == ["rows.svm"]


def test_no_file_is_written_if_one_cannot_be_written(folder, tmp_path):
    outputs = ("--json", tmp_path / "j", "-m", tmp_path / "absent" / "m")
    done = called("discover", folder / "rows.svm", *outputs, code=1)
    assert "there is no folder" in done.stderr
    assert not left(tmp_path)


# ---- interruptions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reading", "options"),
    sliced(itertools.product([1, 2], [["--form", "joint"], ["--shuffle"]]), 0, 3),
)
def test_ctrl_c_writes_a_checkpoint_and_resume_gives_the_same(
    folder, tmp_path, monkeypatch, options, reading
):
    rows, kept = tmp_path / "many.svm", tmp_path / "run.checkpoint"
    rows.write_text((folder / "rows.svm").read_text() * 30)  # several blocks
    arguments = ["discover", rows, *options, "--quiet", "--threads", 2]
    called(*arguments, "--json", tmp_path / "whole")
    visits, count = Source.visits, [0]

    def interrupted(*given, **options):
        count[0] += 1
        for number, visit in enumerate(visits(*given, **options)):
            yield visit
            if count[0] == reading and number == 0:
                signal.raise_signal(signal.SIGINT)

    run = [*arguments, "--json", tmp_path / "again", "--checkpoint", kept]
    with monkeypatch.context() as patch:
        patch.setattr(Source, "visits", interrupted)
        done = called(*run, code=130)
    assert "--resume continues from it" in done.stderr
    assert left(tmp_path) == ["many.svm", "run.checkpoint", "whole"]
    refused = called(*run, "--resume", "--folds", 4, code=1)
    assert "folds was 5 in the run that wrote it, and is 4 now" in refused.stderr
    called(*run, "--resume")
    assert found(tmp_path / "again") == found(tmp_path / "whole")
    assert not kept.exists()


def test_ctrl_c_while_names_are_read(folder, tmp_path, monkeypatch):
    """All evidence is known: the checkpoint keeps it, and --resume only reads the names."""
    kept, names = tmp_path / "run.checkpoint", Source.names
    arguments = ["discover", folder / "rows.vw", "--quiet"]
    called(*arguments, "--json", tmp_path / "whole")

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        return names(*given)

    run = [*arguments, "--json", tmp_path / "again", "--checkpoint", kept]
    with monkeypatch.context() as patch:
        patch.setattr(Source, "names", interrupted)
        done = called(*run, code=130)
        assert "interrupted after 1,500 rows" in done.stderr
        assert called(*arguments, code=130).stderr == "interrupted\n"  # without a checkpoint
    called(*run, "--resume", "--keep-checkpoint")
    assert found(tmp_path / "again") == found(tmp_path / "whole")
    assert kept.exists()


@pytest.mark.parametrize("number", sliced([signal.SIGINT, signal.SIGTERM], 0))
def test_a_signal_while_waiting_for_a_pipe(folder, tmp_path, number):
    rows = (folder / "rows.vw").read_bytes() * 100
    kept = tmp_path / "run.checkpoint"
    arguments = ["discover", "-", "--csv", tmp_path / "again", "--checkpoint", kept]
    process = subprocess.Popen(
        [*THRESHER, *map(str, arguments), "--every", "0.001s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(rows)
    process.stdin.flush()
    assert b"checkpoint after" in process.stderr.readline()
    process.send_signal(number)
    try:
        process.wait(60)
    finally:
        process.kill()
    shown = process.communicate()[1].decode()
    assert process.returncode == 130, shown
    assert "Traceback" not in shown
    assert os.listdir(tmp_path) == ["run.checkpoint"]
    called(*arguments, "--resume", "--quiet", stdin=rows)
    called("discover", "-", "--csv", tmp_path / "whole", "--quiet", stdin=rows)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "whole").read_bytes()
