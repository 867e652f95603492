"""Names of strangers reach the terminal with all control characters escaped."""

import json
import re
import unicodedata

import numpy as np
import pytest

from support.files import called
from support.terminals import on_pipe, on_terminal
from thresher import FTRLClassifier
from thresher.model.model import Model
from thresher.printable import one_line, one_lines, printable

CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]  # C0, DEL, C1
DIRECTIONS = [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
OTHERS = [0xAD, 0x2028, 0x2029, 0x2060, 0xFEFF, 0xE0041]
EVERY = "".join(map(chr, [*CONTROLS, *DIRECTIONS, *OTHERS]))
IN_FILES = "".join(c for c in EVERY if c not in "\0\n\r\t")  # a cell of a file may have these
TITLE = "\x1b]0;owned\x07\x1b[2J"

# What our own display of progress prints: to erase lines, and to move up.
OWN = re.compile(rb"\x1b\[K|\x1b\[J|\x1b\[\d+A|\r\n|\r|\n")


def dangerous(found):
    """Return the characters that a command may not print."""
    text = OWN.sub(b"", found).decode()
    return sorted({c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")})


def in_process(*arguments):
    """Run a command as on a pipe, but in this process, which is faster."""
    done = called(*arguments, code=None)
    return done.returncode, (done.stdout + done.stderr).encode()


@pytest.fixture(
    params=[
        pytest.param(in_process, id="pipe"),
        pytest.param(on_terminal, id="terminal", marks=pytest.mark.soak),
    ]
)
def run(request):
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files whose names, columns, cells, features and tags have all control characters."""
    folder = tmp_path_factory.mktemp("printable") / f"folder{TITLE}"
    folder.mkdir()
    rng = np.random.default_rng(0)
    strong, weak = f"a{IN_FILES}{TITLE}", f"b{IN_FILES}"
    lines = []
    for number in range(300):
        word = strong if number % 2 else weak
        noise = f"n{rng.integers(20)}"
        lines.append(f"{1 if number % 2 else -1} 'tag{TITLE}|s{TITLE} {word} {noise}\n")
    (folder / "rows.vw").write_text("".join(lines).replace("\x0b", "").replace("\x0c", ""))
    head = f'"c{IN_FILES}",number,"label{TITLE}"\n'
    cells = [
        f'"x{IN_FILES}{n % 3}",{rng.normal() + n % 2},"{"yes" if n % 2 else "no"}{IN_FILES}"\n'
        for n in range(200)
    ]
    (folder / "rows.csv").write_text(head + "".join(cells))
    (folder / "bad.csv").write_text(f"number,y\n1,0\n2,1\n{IN_FILES},1\n" + "1,0\n2,1\n" * 50)
    (folder / "bad.svm").write_text(f"1 1:1\n-1 2:1\n1 3:{TITLE}{IN_FILES}\n")
    X = rng.normal(size=(100, 3))
    model = FTRLClassifier().fit(X, np.where(X[:, 0] > 0, f"no{EVERY}", f"yes{EVERY}")).model_
    names = {0: f"first{EVERY}", 1: "\ud800lone", 2: f"third\nline{EVERY}"}
    Model.save(model.__class__(**{**vars(model), "names": names}), folder / "model.thresher")
    (folder / "numbers.svm").write_text("0 1:1 2:1\n0 1:-1 3:2\n")
    return folder


def escaped(found):
    return rb"\x1b]0;owned\x07\x1b[2J" in found


def test_every_character_is_escaped():
    assert printable(EVERY).isprintable()
    assert printable("\x1b\x7f\x9b\u202e\ud800\U000e0041") == r"\x1b\x7f\x9b\u202e\ud800\U000e0041"
    assert printable("a\tb\n", keep="\n") == "a\\tb\n"
    kept = "näïve 日本語 \\d \u0645\u06cc\u200c\u062e 👩\u200d🔬 1\xa0000"
    assert printable(kept) == kept


@pytest.mark.parametrize("more", [(), ("--why", f"unknown{TITLE}")], ids=["top", "why"])
def test_inspect(folder, run, more):
    code, found = run("inspect", folder / "model.thresher", *more)
    assert code == bool(more)
    assert not dangerous(found)
    assert rb"\x1b" in found


@pytest.mark.parametrize("command", ["inspect", "look", "train"])
def test_a_terminal(folder, tmp_path, command):
    """A part of the commands; the mark `soak` has all of them on a terminal."""
    model = tmp_path / f"model{TITLE}"
    arguments = {
        "inspect": [folder / "model.thresher"],
        "look": [folder / "bad.csv"],
        "train": [folder / "rows.csv", "--label", f"label{TITLE}", "-m", model],
    }
    _, found = on_terminal(command, *arguments[command])
    assert not dangerous(found)
    assert rb"\x1b" in found


def test_a_name_takes_one_line(folder):
    _, found = on_pipe("inspect", folder / "model.thresher")
    assert sum(line.startswith((b"first", b"third", b"line")) for line in found.splitlines()) == 2


@pytest.mark.parametrize("file", ["rows.csv", "rows.vw", "bad.csv", "bad.svm"])
def test_look(folder, run, file):
    _, found = run("look", folder / file)
    assert not dangerous(found)
    assert escaped(found)


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "rows.vw"],
        ["train", "rows.csv", "--label", f"label{TITLE}"],
        ["train", "bad.csv", "--label", "y"],
        ["train", "bad.svm"],
        ["train", "bad.svm", "--on-bad-line", "skip"],
        ["train", "absent.svm"],
        ["train", "rows.csv", "--label", f"none{TITLE}"],
        ["train", "rows.vw", "--rule", TITLE],
        ["train", "rows.vw", f"--option{TITLE}"],
        ["tune", "rows.csv", "--label", f"label{TITLE}", "--grid", "l1=0.1,1", "--rule", "ftrl"],
    ],
    ids=lambda arguments: "-".join(a for a in arguments if a.isprintable()),
)
def test_commands_that_write_a_model(folder, run, arguments, tmp_path):
    command, file, *more = arguments
    model = tmp_path / f"model{TITLE}"
    _, found = run(command, folder / file, *more, "-m", model)
    assert not dangerous(found)
    assert escaped(found)


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "rows.vw", "--rules", "ftrl", "--orders", "1"],
        ["discover", "rows.vw", "--top", "5"],
        ["discover", "rows.csv", "--label", f"label{TITLE}", "--classes", "a,b"],
        ["discover", "rows.vw", "--why", f"s{TITLE}^n1"],
        [TITLE],
    ],
    ids=lambda arguments: "-".join(a for a in arguments if a.isprintable()),
)
def test_other_commands(folder, run, arguments, tmp_path):
    command, *more = arguments
    page = ["--html", tmp_path / f"page{TITLE}"] if command in ("compare", "discover") else []
    _, found = run(command, *(folder / a if "rows" in a or "bad" in a else a for a in more), *page)
    assert not dangerous(found)
    assert escaped(found)


def test_convert(folder, run, tmp_path):
    code, found = run("convert", folder / "rows.vw", tmp_path / f"rows{TITLE}.cache")
    assert code == 0
    assert not dangerous(found)
    assert escaped(found)


def test_predict_escapes_only_line_breaks_where_no_terminal_is(folder, tmp_path):
    """Predictions are data: programs and files get one line per row, and all else as it is."""
    arguments = ["predict", folder / "model.thresher", folder / "numbers.svm"]
    code, found = on_terminal(*arguments)
    assert code == 0
    assert not dangerous(found)
    assert rb"\x1b" in found
    code, raw = on_pipe(*arguments)
    assert code == 0
    assert raw.endswith(b"\n")
    text = raw.decode()[:-1]
    rows = text.split("\n")
    assert rows == text.splitlines()
    assert len(rows) == 2
    kept = [chr(c) for c in CONTROLS if len(f"a{chr(c)}b".splitlines()) == 1]
    assert set(kept) < set(text)
    assert r"\n\x0b\x0c\r" in text
    _, told = on_terminal(*arguments, "-o", tmp_path / f"out{TITLE}")
    assert not dangerous(told)
    assert (tmp_path / f"out{TITLE}").read_bytes() == raw


def test_predict_errors(folder, run, tmp_path):
    code, found = run(
        "predict", folder / "model.thresher", folder / "bad.svm", "-o", tmp_path / "o"
    )
    assert code == 1
    assert not dangerous(found)
    assert escaped(found)


@pytest.fixture(scope="module")
def models(folder):
    """Return two models of the rows, whose file names have control characters, too."""
    files = [folder / f"{name}{TITLE}.thresher" for name in ("first", "second")]
    for file, passes in zip(files, (1, 3), strict=True):
        more = ("--rule", "ftrl", "--keep-state", "--passes", passes, "-m", file)
        called("train", folder / "rows.vw", *more)
    return files


@pytest.mark.parametrize("what", [
    "evaluate", "evaluate two", "merge", "merge weights", "against", "export", "export to",
    "from", "from another", "serve", "serve learn",
])  # fmt: skip
def test_commands_on_models(folder, models, run, tmp_path, what):
    (first, second), page = models, tmp_path / f"page{TITLE}"
    arguments = {
        "evaluate": ["evaluate", first, folder / "rows.vw", "--html", page],
        "evaluate two": ["evaluate", first, second, folder / "rows.vw"],
        "merge": ["merge", first, second, "-m", page],
        "merge weights": ["merge", first, second, "-m", page, "--weights", TITLE],
        "against": ["inspect", first, "--against", second, "--html", page],
        "export": ["export", first, "-o", f"{page}.json"],
        "export to": ["export", first, "--to", TITLE],
        "from": ["train", folder / "rows.vw", "--from", first, "-m", page],
        "from another": ["train", folder / "bad.csv", "--from", first, "-m", page],
        "serve": ["serve", first],
        "serve learn": ["serve", f"a={folder / 'model.thresher'}", "--learn", folder / "rows.vw"],
    }
    code, found = run(*arguments[what])
    wrong = ("merge weights", "export to", "from another", "serve", "serve learn")
    assert (code != 0) == (what in wrong)
    assert not dangerous(found)
    assert rb"\x1b" in found
    if what in ("evaluate", "against"):
        assert not dangerous(page.read_text().replace("\n", "").encode())


BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\ud800"


@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_labels_with_line_breaks_take_one_line_for_each_row(tmp_path, kind):
    """Of two classes, and of sets of labels; JSON has the exact labels."""
    X, y = np.eye(2), np.array([f"no{BREAKS}", "yes\r\nmo\tre"])
    model = FTRLClassifier(passes=50).fit(X, y).model_
    if kind == "labels":
        model = FTRLClassifier(passes=50).fit(X, np.eye(2, dtype=int)).model_
        model = Model(**{**vars(model), "classes": y, "learner": None})
    Model.save(model, tmp_path / "m")
    (tmp_path / "rows.svm").write_text("0 1:1\n0 2:1\n")
    arguments = ["predict", tmp_path / "m", tmp_path / "rows.svm"]
    shown = [r"no\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ud800", "yes\\r\\nmo\tre"]
    code, raw = on_pipe(*arguments)
    assert code == 0
    assert raw.decode() == "".join(f"{label}\n" for label in shown)
    called(*arguments, "-o", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == raw
    _, raw = on_pipe(*arguments, "--explain", "1")
    answers = [line.split("\t")[0] for line in raw.decode().splitlines()]
    assert answers == [label.replace("\t", r"\t") for label in shown]
    _, raw = on_pipe(*arguments, "--explain", "1", "--json")
    found = [json.loads(line)["prediction"] for line in raw.splitlines()]
    assert found == ([[label] for label in y] if kind == "labels" else y.tolist())


def test_a_tag_with_line_breaks_takes_one_line(tmp_path):
    tag = "t\x0b\x0c\x1c\x85\u2028"
    (tmp_path / "rows.vw").write_text(f"1 '{tag}|a b\n-1 'plain|a c\n" * 20, newline="")
    called("train", tmp_path / "rows.vw", "-m", tmp_path / "m")
    code, raw = on_pipe("predict", tmp_path / "m", tmp_path / "rows.vw")
    assert code == 0
    assert raw.decode().splitlines()[:2] == [r"1 t\x0b\x0c\x1c\x85\u2028", "-1 plain"]
    assert len(raw.decode().splitlines()) == 40


def test_explained_rows_escape_names(folder, models):
    """Of a row, only the tag and the label are as they are on a pipe, but for line breaks."""
    arguments = ["predict", models[0], folder / "rows.vw", "--explain", "2"]
    code, found = on_terminal(*arguments)
    assert code == 0
    assert not dangerous(found.replace(b"\t", b" "))
    _, raw = on_pipe(*arguments)
    for line in raw.splitlines():
        _answer, *features = line.split(b"\t")
        assert features
        assert not dangerous(b"".join(features))


@pytest.mark.parametrize("form", ["sql", "csv", "vw", "json"])
def test_export_escapes_names_on_a_terminal(models, form):
    """On a pipe, they are data for a program, as in a file."""
    code, found = on_terminal("export", models[0], "--to", form)
    assert code == 0
    assert not dangerous(found)
    _, raw = on_pipe("export", models[0], "--to", form)
    assert (b"\x1b" in raw) == (form in ("sql", "csv"))


def test_lines_without_breaks_are_not_made_again():
    plain, tabs = ["yes", "", "café"], ["a\tb", "c\x1b"]
    assert one_lines(plain) is plain
    assert one_lines(tabs) is tabs
    assert one_lines(["a\tb", "c\nd", "e\ud800"]) == ["a\tb", r"c\nd", r"e\ud800"]
    assert one_lines(list(EVERY)) == [one_line(letter) for letter in EVERY]
