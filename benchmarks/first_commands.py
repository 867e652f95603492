"""The first command that comes to mind, on real data in the files that people have.

Each try writes a training and a test file, runs `thresher train` with the first command, and, if it
ends with an error or shows a warning, runs the next command. The options of the next command must
be named in what the command before has said. The test score is compared with a model made by hand:
the same rows as a matrix, shuffled, encoded by scikit-learn, and the same rule.

Run: ``python benchmarks/first_commands.py [NAME ...] [--folder FOLDER]``; the data sets are in the
folder THRESHER_DATA.
"""

from __future__ import annotations

import argparse
import csv
import lzma
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from folder import DATA
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import f1_score, r2_score
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder, StandardScaler

from thresher import OnePassClassifier, OnePassRegressor

_SEED = 20_000  # of the split into training and test rows


@dataclass
class Files:
    """A training file and a test file, the labels of the test rows, and the rows for the hand.

    `hand` has training rows, training labels and test rows, as scikit-learn takes them.
    """

    train: Path
    test: Path
    truth: list[Any]
    hand: tuple[Any, Any, Any]


@dataclass
class Try:
    """Files, and commands without `thresher train FILE -m MODEL`; `measure` compares labels."""

    files: Callable[[Path], Files]
    commands: Sequence[Sequence[str]]
    measure: str = "accuracy"


# ---- rows ----------------------------------------------------------------------------------------


def _messages(part: str, groups: Sequence[str]) -> list[tuple[str, str]]:
    """Return group and text of newsgroup messages, sorted by group."""
    found = []
    with lzma.open(DATA / "20news-bydate.tar.xz") as file, tarfile.open(fileobj=file) as archive:
        for member in archive:
            folders = member.name.split("/")
            if member.isfile() and part in member.name and folders[-2].startswith(tuple(groups)):
                data = archive.extractfile(member)
                assert data is not None
                text = data.read().decode("latin-1").partition("\n\n")[2]
                found.append((folders[-2], " ".join(text.split())))
    return sorted(found, key=lambda row: row[0])


def _lines(name: str) -> list[str]:
    return lzma.decompress((DATA / name).read_bytes()).decode().splitlines()


def _table(name: str, delimiter: str | None = ",") -> list[list[str]]:
    lines = (DATA / "uci" / name).read_text().splitlines()
    return [[cell.strip() for cell in line.split(delimiter)] for line in lines if line.strip()]


def _split(rows: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return 70 % of the rows, in the order of the file, and the others."""
    test = np.random.default_rng(_SEED).permutation(len(rows)) < 0.3 * len(rows)
    return (
        [row for row, out in zip(rows, test, strict=True) if not out],
        [row for row, out in zip(rows, test, strict=True) if out],
    )


def _encoded(train: list[list[str]], test: list[list[str]], ignore: Sequence[int]) -> Any:
    """Return cells as matrices: numbers standardised, categories one-hot, as fitted on `train`."""
    columns = [j for j in range(len(train[0])) if j not in ignore]
    numeric = [j for j in columns if all(_number(row[j]) is not None for row in train)]
    words = [j for j in columns if j not in numeric]
    encoder = make_column_transformer(
        (StandardScaler(), numeric), (OneHotEncoder(handle_unknown="ignore"), words)
    )

    def cells(rows: list[list[str]]) -> np.ndarray:
        table = np.array(rows, object)
        for j in numeric:
            table[:, j] = [_number(cell) or 0.0 for cell in table[:, j]]
        return table

    return encoder.fit_transform(cells(train)), encoder.transform(cells(test))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return 0.0 if cell in ("?", "") else None


# ---- files ---------------------------------------------------------------------------------------


def _written(folder: Path, name: str, rows: list[Any], **style: Any) -> Path:
    path = folder / name
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n", **style).writerows(rows)
    return path


def table(
    name: str, label: int, header: bool = False, ignore: Sequence[int] = (), sort: bool = False,
    delimiter: str = ",", between: str | None = ",", number: bool = False,
) -> Callable[[Path], Files]:  # fmt: skip
    """Return a writer of a table of the UCI repository."""

    def write(folder: Path) -> Files:
        rows = _table(name, between)
        top, rows = (rows[:1], rows[1:]) if header else ([], rows)
        at = label % len(rows[0])
        if sort:
            rows = sorted(rows, key=lambda row: row[at])
        train, test = _split(rows)
        X, X_test = _encoded(train, test, (*ignore, at))
        cast: Any = float if number else str
        return Files(
            _written(folder, "train.csv", top + train, delimiter=delimiter),
            _written(folder, "test.csv", top + test, delimiter=delimiter),
            [cast(row[at]) for row in test],
            (X, np.array([cast(row[at]) for row in train]), X_test),
        )

    return write


def news(groups: Sequence[str], form: str, short: bool = True) -> Callable[[Path], Files]:
    """Return a writer of newsgroup messages; `form` is "tsv" without, or "csv" with a header."""

    def write(folder: Path) -> Files:
        def rows(part: str) -> list[tuple[str, str]]:
            cut = (lambda group: group.split(".")[0]) if short else (lambda group: group)
            return [(cut(group), text) for group, text in _messages(part, groups)]

        train, test = rows("train"), rows("test")
        if form == "csv":
            order = np.random.default_rng(0).permutation(len(train))
            train = [train[i] for i in order]
        words = CountVectorizer(token_pattern=r"\w+")
        X = words.fit_transform([text for _, text in train])
        names = [("label", "text")] if form == "csv" else []
        style = {} if form == "csv" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
        style |= {} if form == "csv" else {"quotechar": None}
        return Files(
            _written(folder, f"train.{form}", names + train, **style),
            _written(folder, f"test.{form}", names + test, **style),
            [label for label, _ in test],
            (X, np.array([label for label, _ in train]), words.transform([t for _, t in test])),
        )

    return write


def sorted_svmlight(folder: Path) -> Files:
    """Write a9a sorted by label."""
    from sklearn.datasets import load_svmlight_files

    paths = []
    for name in ("a9a", "a9a.t"):
        lines = _lines(f"{name}.svm.xz")
        paths.append(folder / f"{name}.svm")
        paths[-1].write_text("\n".join(sorted(lines, key=lambda line: line[:2])) + "\n")
    X, y, X_test, y_test = load_svmlight_files(paths, n_features=123)
    return Files(*paths, y_test.astype(int).tolist(), (X, y.astype(int), X_test))


def _eurlex(name: str, rows: int) -> tuple[list[list[str]], list[list[str]], list[list[float]]]:
    labels, words, values = [], [], []
    for line in _lines(f"{name}.txt.xz")[1 : rows + 1]:
        first, *pairs = line.split(" ")
        labels.append([f"topic{number}" for number in first.split(",") if number])
        words.append([f"word{pair.split(':')[0]}" for pair in pairs])
        values.append([float(pair.split(":")[1]) for pair in pairs])
    return labels, words, values


def topics(form: str) -> Callable[[Path], Files]:
    """Return a writer of EUR-Lex: Parquet with lists, or CSV with cells such as "a|b"."""

    def write(folder: Path) -> Files:
        import pyarrow as pa
        from pyarrow import parquet

        parts = {n: _eurlex(f"eurlex4k_{n}", rows) for n, rows in (("train", 6000), ("test", 1500))}
        for name, (labels, words, _) in parts.items():
            if form == "parquet":
                columns = pa.table({"labels": labels, "words": words})
                parquet.write_table(columns, folder / f"{name}.parquet")
            else:
                rows = [("labels", "words")]
                rows += [("|".join(a), " ".join(b)) for a, b in zip(labels, words, strict=True)]
                _written(folder, f"{name}.csv", rows)
        counts = CountVectorizer(token_pattern=r"\w+")
        X = counts.fit_transform([" ".join(row) for row in parts["train"][1]])
        known = MultiLabelBinarizer().fit(parts["train"][0])
        return Files(
            folder / f"train.{form}", folder / f"test.{form}", parts["test"][0],
            (X, (known, known.transform(parts["train"][0])),
             counts.transform([" ".join(row) for row in parts["test"][1]])),
        )  # fmt: skip

    return write


def categories(folder: Path) -> Files:
    """Write the mushrooms as Parquet with dictionary columns, sorted by class."""
    import pyarrow as pa
    from pyarrow import parquet

    train, test = _split(sorted(_table("agaricus-lepiota.data")))
    X, X_test = _encoded(train, test, (0,))
    for name, rows in (("train", train), ("test", test)):
        cells = np.array(rows)
        names = ["class", *(f"trait{j}" for j in range(1, cells.shape[1]))]
        columns = {n: pa.array(cells[:, j]).dictionary_encode() for j, n in enumerate(names)}
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    return Files(
        folder / "train.parquet", folder / "test.parquet", [row[0] for row in test],
        (X, np.array([row[0] for row in train]), X_test),
    )  # fmt: skip


TRIES: dict[str, Try] = {
    "comp_vs_rec.tsv, label<TAB>text, sorted": Try(
        news(("comp", "rec"), "tsv"), [[], ["--shuffle"]]
    ),
    "20 newsgroups.csv": Try(news(("",), "csv", short=False), [[], ["--text", "text"]]),
    "spambase.csv, no header, sorted": Try(
        table("spambase.data", -1, sort=True),
        [[], ["--label", "-1"], ["--label", "-1", "--shuffle"]],
    ),
    "magic04.csv, no header, sorted, word labels": Try(
        table("magic04.data", -1, sort=True),
        [[], ["--label", "-1"], ["--label", "-1", "--shuffle"]],
    ),
    "mushroom.csv, no header, label first": Try(
        table("agaricus-lepiota.data", 0), [["--label", "0"], ["--label", "0", "--shuffle"]]
    ),
    "crx;csv, header, missing cells": Try(
        table("crx.data", -1, header=True, delimiter=";"),
        [[], ["--label", "a16"], ["--label", "a16", "--shuffle"]],
    ),
    "wdbc.csv, no header, id, scales": Try(
        table("wdbc.data", 1, ignore=(0,)),
        [["--label", "1"], ["--label", "1", "--scale", "standard"]],
    ),
    "housing, spaces, regression": Try(
        table("housing.data", -1, delimiter=" ", between=None, number=True),
        [["--loss", "squared"], ["--loss", "squared", "--label", "-1"],
         ["--loss", "squared", "--label", "-1", "--scale", "standard"]],
        "r2",
    ),
    "a9a.svm, sorted": Try(sorted_svmlight, [[], ["--shuffle"]]),
    "mushroom.parquet, categories, sorted": Try(categories, [[], ["--shuffle"]]),
    "eurlex.parquet, lists": Try(
        topics("parquet"), [["--multilabel", "--label", "labels"]], "micro_f1"
    ),
    "eurlex.csv, a|b": Try(
        topics("csv"),
        [["--multilabel", "--label", "labels"],
         ["--multilabel", "--label", "labels", "--text", "words"]],
        "micro_f1",
    ),
}  # fmt: skip


# ---- running -------------------------------------------------------------------------------------


def _thresher(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "thresher.cli", *arguments], capture_output=True, text=True
    )
    return done.returncode, done.stderr


def _score(truth: Sequence[Any], found: Sequence[Any], measure: str) -> float:
    if measure == "r2":
        return float(r2_score(truth, [float(value) for value in found]))
    if measure == "micro_f1":
        known = MultiLabelBinarizer(sparse_output=True).fit([*truth, *found])
        return float(f1_score(known.transform(truth), known.transform(found), average="micro"))
    return float(np.mean([str(a) == str(b) for a, b in zip(truth, found, strict=True)]))


def _by_hand(files: Files, measure: str) -> float:
    X, y, X_test = files.hand
    if measure == "micro_f1":
        known, y = y
        found = OnePassClassifier(random_state=0).fit(X, y).predict(X_test)
        return _score(files.truth, known.inverse_transform(found), measure)
    made = OnePassRegressor if measure == "r2" else OnePassClassifier
    return _score(files.truth, made(random_state=0).fit(X, y).predict(X_test), measure)


def run(name: str, tried: Try, folder: Path) -> dict[str, Any]:
    """Run the commands of a try until one is silent; return the scores and what was said."""
    folder.mkdir(parents=True, exist_ok=True)
    files, model = tried.files(folder), folder / "model"
    said, steps = "", []
    for command in tried.commands:
        before = steps[-1]["command"] if steps else command
        new = [word for word in command if word.startswith("--") and word not in before]
        unnamed = [word for word in new if word not in said]
        code, output = _thresher("train", str(files.train), "-m", str(model), *command)
        lines = output.splitlines()
        said = "\n".join(line for line in lines if code or not line.startswith("   "))
        steps.append({"command": list(command), "code": code, "said": said, "unnamed": unnamed})
        if code == 0 and "--" not in said:
            break
    score = None
    if steps[-1]["code"] == 0:
        code, output = _thresher("predict", str(model), str(files.test), "-o", f"{model}.out")
        if code == 0:
            lines: list[Any] = Path(f"{model}.out").read_text().splitlines()
            if tried.measure == "micro_f1":
                lines = [[label for label in re.split("[,|]", line) if label] for line in lines]
            score = _score(files.truth, lines, tried.measure)
        else:
            steps.append({"command": ["predict"], "code": code, "said": output, "unnamed": []})
    return {"name": name, "steps": steps, "score": score, "hand": _by_hand(files, tried.measure)}


def main() -> None:
    """Run the tries and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--folder", type=Path, help="keep the files here")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    for name, tried in TRIES.items():
        if given.names and not name.startswith(tuple(given.names)):
            continue
        result = run(name, tried, folder / name.split(",")[0].replace(" ", "_"))
        score = "none" if result["score"] is None else f"{result['score']:.4f}"
        print(f"\n{name} ({tried.measure}): {score}; by hand {result['hand']:.4f}")
        for step in result["steps"]:
            print(f"  train {' '.join(step['command'])}  [exit {step['code']}]")
            for line in step["said"].splitlines():
                print(f"    {line}")
            if step["unnamed"]:
                print(f"    NOT NAMED BEFORE: {' '.join(step['unnamed'])}")


if __name__ == "__main__":
    main()
