"""Files of the kinds that people have: sorted, without header, in other encodings, and so on.

`KINDS` holds the generators by name. Each is called as ``generator(folder, seed=0)``, writes one
file into the folder and returns `FileFacts`. The same seed gives the same bytes.
"""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import numpy as np

# Importing these adds their generators.
import support.odd_files_people_have
import support.sparse_files_people_have
import support.typed_files_people_have  # noqa: F401
from support.file_facts import (
    CITIES,
    KINDS,
    FileFacts,
    classes_of,
    csv_text,
    kind,
    numbers,
    rng_of,
    sentence,
    write_csv,
)

__all__ = ["KINDS", "FileFacts", "all_kinds"]

ROWS = 600


def all_kinds() -> list[str]:
    """Return the names of all generators."""
    return sorted(KINDS)


# ---- order of rows -------------------------------------------------------------------------------


@kind
def texts_sorted_by_label(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    cells = [[int(good), sentence(rng, good)] for good in (True, False) for _ in range(rows // 2)]
    path = write_csv(folder / "reviews.csv", ["label", "review"], cells)
    return FileFacts(
        path,
        rows=rows,
        labels=(0, 1),
        columns={"review": "text"},
        options=("--text review", "--shuffle"),
        more={"longest_run": rows // 2},
    )


@kind
def numbers_sorted_by_label(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    X = numbers(rng, rows, 4)
    y = classes_of(rng, X, 3)
    order = np.argsort(y, kind="stable")
    cells = [[*map(float, X[i]), "abc"[y[i]]] for i in order]
    path = write_csv(folder / "sorted.csv", ["f0", "f1", "f2", "f3", "class"], cells)
    return FileFacts(
        path,
        rows=rows,
        label="class",
        task="classes",
        labels=("a", "b", "c"),
        columns=dict.fromkeys(("f0", "f1", "f2", "f3"), "number"),
        options=("--shuffle",),
        more={"longest_run": int(np.bincount(y).max())},
    )


@kind
def regression_drifting_with_time(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    first = date(2020, 1, 1)
    cells = []
    for i in range(rows):
        size = round(float(rng.uniform(30, 150)), 1)
        price = round(2.0 * size + 0.8 * i + float(rng.normal(0, 10)), 2)
        cells.append([(first + timedelta(i)).isoformat(), size, str(rng.choice(CITIES)), price])
    path = write_csv(folder / "prices.csv", ["day", "size", "city", "price"], cells)
    return FileFacts(
        path,
        rows=rows,
        label="price",
        task="regression",
        columns={"day": "date", "size": "number", "city": "category"},
        options=("--label price", "--loss squared", "--ignore day", "--shuffle"),
    )


# ---- separators and headers ----------------------------------------------------------------------


@kind
def csv_without_header(folder: Path, seed: int = 0, rows: int = 150) -> FileFacts:
    rng = rng_of(seed)
    X = numbers(rng, rows, 4)
    y = classes_of(rng, X, 3)
    names = ("setosa", "versicolor", "virginica")
    cells = [[*map(float, X[i]), names[y[i]]] for i in range(rows)]
    path = write_csv(folder / "iris.data", None, cells)
    return FileFacts(
        path,
        rows=rows,
        label=4,
        task="classes",
        labels=names,
        columns=dict.fromkeys(range(4), "number"),
        options=("--no-header", "--label -1"),
    )


@kind
def numbers_without_header(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """The label comes first, and values repeat in the first line."""
    rng = rng_of(seed)
    X = np.where(rng.random((rows, 12)) < 0.5, 0, numbers(rng, rows, 12))
    X[0, 3:8] = 0
    y = classes_of(rng, X)
    path = write_csv(
        folder / "pixels.csv", None, [[int(y[i]), *map(float, X[i])] for i in range(rows)]
    )
    return FileFacts(
        path,
        rows=rows,
        label=0,
        labels=(0, 1),
        columns=dict.fromkeys(range(1, 13), "number"),
        options=("--no-header", "--label 0"),
    )


@kind
def semicolon_csv(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    X = numbers(rng, rows, 3)
    y = classes_of(rng, X)
    cells = [
        [int(rng.integers(18, 80)), str(rng.choice(CITIES)), *map(float, X[i]), ("no", "yes")[y[i]]]
        for i in range(rows)
    ]
    path = write_csv(folder / "bank.csv", ["age", "city", "a", "b", "c", "y"], cells, ";")
    kinds = {"age": "number", "city": "category", "a": "number", "b": "number", "c": "number"}
    return FileFacts(
        path,
        rows=rows,
        label="y",
        labels=("no", "yes"),
        columns=kinds,
        more={"delimiter": ";"},
    )


@kind
def tab_separated(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    X = numbers(rng, rows, 3)
    y = classes_of(rng, X)
    cells = [[int(y[i]), *map(float, X[i])] for i in range(rows)]
    path = write_csv(folder / "rows.tsv", ["target", "a", "b", "c"], cells, "\t")
    return FileFacts(
        path,
        rows=rows,
        label="target",
        labels=(0, 1),
        columns=dict.fromkeys("abc", "number"),
        more={"delimiter": "\t"},
    )


@kind
def label_tab_text(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """Lines `label<TAB>text`, as message collections have them."""
    rng = rng_of(seed)
    lines = []
    for _ in range(rows):
        good = rng.random() < 0.8
        lines.append(f"{'ham' if good else 'spam'}\t{sentence(rng, bool(good))}\n")
    path = folder / "messages.txt"
    path.write_text("".join(lines))
    return FileFacts(
        path,
        rows=rows,
        label=0,
        labels=("ham", "spam"),
        columns={1: "text"},
        more={"delimiter": "\t"},
    )


@kind
def label_tab_text_with_quotes(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """As `label_tab_text`, and some texts begin with a quote that is never closed."""
    made = label_tab_text(folder, seed, rows)
    lines = made.path.read_text().splitlines(keepends=True)
    for at in range(5, rows, 97):
        lines[at] = lines[at].replace("\t", '\t"', 1)
    path = folder / "quotes.txt"
    path.write_text("".join(lines))
    return FileFacts(
        path,
        rows=rows,
        label=0,
        labels=("ham", "spam"),
        columns={1: "text"},
        more={"delimiter": "\t", "quotes": len(range(5, rows, 97))},
    )


@kind
def text_column(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    cells = []
    for _ in range(rows):
        good = bool(rng.random() < 0.5)
        cells.append(
            [sentence(rng, good), str(rng.choice(CITIES)), int(rng.integers(1, 6)), int(good)]
        )
    path = write_csv(folder / "reviews.csv", ["review", "city", "stars", "label"], cells)
    return FileFacts(
        path,
        rows=rows,
        labels=(0, 1),
        columns={"review": "text", "city": "category", "stars": "number"},
        options=("--text review",),
    )


# ---- labels --------------------------------------------------------------------------------------


def _multilabel(folder: Path, seed: int, separator: str, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    topics = ("art", "food", "music", "sport", "travel")
    cells = []
    for _ in range(rows):
        own = sorted(str(t) for t in rng.choice(topics, rng.integers(0, 4), replace=False))
        words = [f"{topic}{rng.integers(3)}" for topic in own] + ["plain", "words"]
        words += [str(word) for word in rng.choice(["x1", "x2", "x3", "x4", "x5"], 6)]
        cells.append([" ".join(words), separator.join(own)])
    path = write_csv(folder / "topics.csv", ["abstract", "topics"], cells)
    return FileFacts(
        path,
        rows=rows,
        label="topics",
        task="multilabel",
        labels=topics,
        columns={"abstract": "text"},
        options=(
            "--label topics",
            "--multilabel",
            f"--label-separator {separator if separator == ',' else repr(separator)}",
            "--text abstract",
        ),
        more={"separator": separator, "without_labels": sum(not row[1] for row in cells)},
    )


@kind
def multilabel_commas(folder: Path, seed: int = 0) -> FileFacts:
    return _multilabel(folder, seed, ",")


@kind
def multilabel_semicolons(folder: Path, seed: int = 0) -> FileFacts:
    return _multilabel(folder, seed, ";")


@kind
def multilabel_bars(folder: Path, seed: int = 0) -> FileFacts:
    return _multilabel(folder, seed, "|")


@kind
def column_per_label(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """One column of 0 and 1 for each label, after a column of text."""
    rng = rng_of(seed)
    topics = ("toxic", "threat", "insult", "obscene")
    cells = []
    for _ in range(rows):
        own = rng.random(4) < (0.3, 0.1, 0.25, 0.2)
        words = [t * 2 for t, has in zip(topics, own, strict=True) if has]
        cells.append([f"{sentence(rng, True)} {' '.join(words)}", *own.astype(int).tolist()])
    path = write_csv(folder / "comments.csv", ["comment", *topics], cells)
    return FileFacts(
        path,
        rows=rows,
        label=None,
        task="multilabel",
        labels=topics,
        columns={"comment": "text"},
        options=("--multilabel", "--label toxic,threat,insult,obscene", "--text comment"),
    )


# ---- nothing, or another format ------------------------------------------------------------------


@kind
def empty_file(folder: Path, seed: int = 0) -> FileFacts:
    path = folder / "empty.csv"
    path.write_bytes(b"")
    return FileFacts(path, label=None, task="")


@kind
def header_only(folder: Path, seed: int = 0) -> FileFacts:
    path = folder / "header.csv"
    path.write_text("age,city,label\n")
    return FileFacts(path, task="", columns={"age": "empty", "city": "empty"})


@kind
def json_lines(folder: Path, seed: int = 0, rows: int = 50) -> FileFacts:
    rng = rng_of(seed)
    path = folder / "rows.jsonl"
    lines = [{"text": sentence(rng, bool(i % 2)), "label": i % 2} for i in range(rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return FileFacts(path, format="", rows=rows, label=None, task="")


@kind
def zip_archive(folder: Path, seed: int = 0) -> FileFacts:
    import zipfile

    path = folder / "table.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("xl/worksheets/sheet1.xml", (2020, 1, 1, 0, 0, 0))
        archive.writestr(entry, csv_text([["a", "b"]]))
    return FileFacts(path, format="", label=None, task="")
