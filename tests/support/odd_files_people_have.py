"""CSV files with odd columns, encodings and lines."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from support.file_facts import (
    CITIES,
    FileFacts,
    classes_of,
    csv_text,
    kind,
    numbers,
    rng_of,
    sentence,
    write_csv,
)

ROWS = 600
MISSING = ("", "NA", "N/A", "n/a", "null", "NULL", "None", "nan", "NaN", "?", "-")


# ---- columns -------------------------------------------------------------------------------------


@kind
def id_columns(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    X = numbers(rng, rows, 2)
    y = classes_of(rng, X)
    cells = [
        [100_000 + i, str(uuid.UUID(bytes=rng.bytes(16))), *map(float, X[i]), int(y[i])]
        for i in range(rows)
    ]
    path = write_csv(folder / "customers.csv", ["customer_id", "session", "a", "b", "label"], cells)
    return FileFacts(
        path,
        rows=rows,
        labels=(0, 1),
        columns={"customer_id": "id", "session": "id", "a": "number", "b": "number"},
        options=("--ignore customer_id", "--ignore session"),
    )


@kind
def columns_of_different_scale(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    X = numbers(rng, rows, 4)
    y = classes_of(rng, X)
    X[:, 3] = (X[:, 3] * 1e5 + 4e6).round()
    X[:, 2] = (X[:, 2] * 1e-5).round(10)
    path = write_csv(
        folder / "scale.csv",
        ["a", "b", "tiny", "salary", "label"],
        [[*map(float, X[i]), int(y[i])] for i in range(rows)],
    )
    return FileFacts(
        path,
        rows=rows,
        labels=(0, 1),
        columns=dict.fromkeys(("a", "b", "tiny", "salary"), "number"),
        more={"odd": ("salary", "tiny")},
    )


@kind
def mixed_types(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """A column that is a number in the first half and sometimes a word in the second."""
    rng = rng_of(seed)
    X = numbers(rng, rows, 2)
    y = classes_of(rng, X)
    words = 0
    cells = []
    for i in range(rows):
        income = str(int(rng.integers(1000, 9000)))
        if i >= rows // 2 and rng.random() < 0.2:
            income, words = str(rng.choice(["unknown", "refused", "high"])), words + 1
        cells.append([*map(float, X[i]), income, int(y[i])])
    path = write_csv(folder / "mixed.csv", ["a", "b", "income", "label"], cells)
    return FileFacts(
        path,
        rows=rows,
        labels=(0, 1),
        columns={"a": "number", "b": "number", "income": "number"},
        options=("--on-bad-line skip",),
        more={"mixed": "income", "words": words},
    )


@kind
def missing_values(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    X = numbers(rng, rows, 3)
    y = classes_of(rng, X)
    counts = {"a": 0, "b": 0, "city": 0}
    cells = []
    for i in range(rows):
        row = {"a": str(X[i, 0]), "b": str(X[i, 1]), "city": str(rng.choice(CITIES))}
        for name in row:
            if rng.random() < 0.15:
                row[name] = str(rng.choice(MISSING))
                counts[name] += 1
        cells.append([*row.values(), float(X[i, 2]), "", 7, int(y[i])])
    head = ["a", "b", "city", "c", "comment", "version", "label"]
    path = write_csv(folder / "missing.csv", head, cells)
    return FileFacts(
        path,
        rows=rows,
        labels=(0, 1),
        columns={
            "a": "number",
            "b": "number",
            "city": "category",
            "c": "number",
            "comment": "empty",
            "version": "constant",
        },
        options=("--missing indicator",),
        more={"missing": {**counts, "c": 0, "comment": rows, "version": 0}},
    )


@kind
def dates(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    rng = rng_of(seed)
    X = numbers(rng, rows, 2)
    y = classes_of(rng, X)
    cells = []
    for i in range(rows):
        at = datetime(2021, 3, 1) + timedelta(minutes=int(rng.integers(0, 500_000)))
        forms = (at.date().isoformat(), at.isoformat(" "), at.strftime("%d/%m/%Y"))
        cells.append([*forms, *map(float, X[i]), int(y[i])])
    path = write_csv(folder / "dates.csv", ["day", "at", "european", "a", "b", "label"], cells)
    return FileFacts(
        path,
        rows=rows,
        labels=(0, 1),
        columns={"day": "date", "at": "date", "european": "date", "a": "number", "b": "number"},
        options=("--ignore day", "--ignore at", "--ignore european"),
    )


@kind
def aligned_by_spaces(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """Columns of numbers with several spaces between them, and no header."""
    rng = rng_of(seed)
    X = numbers(rng, rows, 4)
    y = 10 * X[:, 0] - 5 * X[:, 1] + rng.normal(size=rows) + 100
    path = folder / "housing.data"
    lines = [" ".join(f"{x:9.4f}" for x in (*X[i], y[i])) for i in range(rows)]
    path.write_text("".join(f" {line}\n" for line in lines))
    return FileFacts(
        path,
        rows=rows,
        label=4,
        task="regression",
        columns=dict.fromkeys(range(4), "number"),
        options=("--no-header", "--label -1", "--loss squared"),
        more={"delimiter": " "},
    )


@kind
def plus_and_minus(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """The labels are + and -, and - is no missing value there."""
    rng = rng_of(seed)
    X = numbers(rng, rows, 2)
    y = classes_of(rng, X)
    cells = [["-" if i % 50 == 7 else X[i, 0], float(X[i, 1]), "+-"[y[i]]] for i in range(rows)]
    path = write_csv(folder / "credit.csv", ["a", "b", "class"], cells)
    return FileFacts(
        path,
        rows=rows,
        label="class",
        labels=("+", "-"),
        columns={"a": "number", "b": "number"},
        options=("--missing indicator",),
        more={"missing": {"a": rows // 50}},
    )


@kind
def long_runs(folder: Path, seed: int = 0, rows: int = 20_000) -> FileFacts:
    """The second class begins after the first batches; without header."""
    rng = rng_of(seed)
    X = numbers(rng, rows, 3)
    y = np.sort(classes_of(rng, X))
    path = write_csv(folder / "magic.data", None, [[*map(float, X[i]), "gh"[y[i]]]
                                                   for i in range(rows)])  # fmt: skip
    return FileFacts(
        path,
        rows=rows,
        label=3,
        labels=("g", "h"),
        columns=dict.fromkeys(range(3), "number"),
        options=("--no-header", "--label -1", "--shuffle"),
        more={"longest_run": rows // 2},
    )


# ---- encodings and lines -------------------------------------------------------------------------


def _cities(folder: Path, name: str, seed: int, rows: int, cities: tuple[str, ...]) -> FileFacts:
    rng = rng_of(seed)
    X = numbers(rng, rows, 2)
    y = classes_of(rng, X)
    cells = [[str(rng.choice(cities)), *map(float, X[i]), int(y[i])] for i in range(rows)]
    path = write_csv(folder / name, ["city", "a", "b", "label"], cells)
    kinds = {"city": "category", "a": "number", "b": "number"}
    return FileFacts(path, rows=rows, labels=(0, 1), columns=kinds)


def _rewritten(made: FileFacts, data: bytes, options: tuple[str, ...] = (), **more: object):
    made.path.write_bytes(data)
    return FileFacts(
        made.path,
        rows=made.rows,
        labels=made.labels,
        columns=made.columns,
        options=options,
        more=dict(more),
    )


@kind
def latin1(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    made = _cities(folder, "latin1.csv", seed, rows, ("Köln", "Málaga", "Besançon"))
    data = made.path.read_text().encode("latin-1")
    return _rewritten(made, data, ("--encoding latin-1",), encoding="latin-1")


@kind
def utf16(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """As spreadsheet programs save "Unicode text"."""
    made = _cities(folder, "utf16.csv", seed, rows, ("Köln", "Málaga", "Besançon"))
    data = b"\xff\xfe" + made.path.read_text().encode("utf-16-le")
    return _rewritten(made, data, ("--encoding utf-16",), encoding="utf-16")


@kind
def byte_order_mark(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    made = _cities(folder, "bom.csv", seed, rows, CITIES)
    return _rewritten(made, b"\xef\xbb\xbf" + made.path.read_bytes(), bom=True)


@kind
def crlf(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    made = _cities(folder, "crlf.csv", seed, rows, CITIES)
    return _rewritten(made, made.path.read_bytes().replace(b"\n", b"\r\n"), line_end="\r\n")


@kind
def nul_bytes(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    made = _cities(folder, "nul.csv", seed, rows, CITIES)
    lines = made.path.read_bytes().splitlines(keepends=True)
    for at in range(10, rows, 100):
        lines[at] = lines[at].replace(b",", b"\0,", 1)
    nul = len(range(10, rows, 100))
    return _rewritten(made, b"".join(lines), (r"tr -d '\0' < ",), nul=nul)


@kind
def ragged_lines(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """Some lines have a cell too many or too few; they are not among the `rows`."""
    made = _cities(folder, "ragged.csv", seed, rows, CITIES)
    lines = made.path.read_text().splitlines()
    bad = list(range(20, rows, 60))
    for at in bad:
        lines[at] = lines[at] + ",1" if at % 40 else lines[at].rsplit(",", 1)[0]
    made.path.write_text("\n".join(lines) + "\n")
    return FileFacts(
        made.path,
        rows=rows - len(bad),
        labels=made.labels,
        columns=made.columns,
        options=("--on-bad-line skip",),
        more={"bad_lines": len(bad), "first_bad_line": bad[0] + 1},
    )


@kind
def duplicated_rows(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    made = _cities(folder, "copies.csv", seed, rows // 2, CITIES)
    head, *lines = made.path.read_text().splitlines(keepends=True)
    copied = [*lines, *lines]
    order = rng_of(seed + 1).permutation(len(copied))
    made.path.write_text(head + "".join(copied[i] for i in order))
    return FileFacts(
        made.path,
        rows=len(copied),
        labels=made.labels,
        columns=made.columns,
        more={"duplicates": len(copied) - len(set(lines))},
    )


@kind
def no_usual_label_name(folder: Path, seed: int = 0, rows: int = ROWS) -> FileFacts:
    """No column is called label, y, target or class; the last one is the label."""
    rng = rng_of(seed)
    cells = []
    for _ in range(rows):
        good = bool(rng.random() < 0.5)
        words = sentence(rng, good, 6)
        cells.append([words, str(rng.choice(CITIES)), "liked" if good else "disliked"])
    path = folder / "opinions.csv"
    path.write_text(csv_text([["words", "city", "opinion"], *cells]))
    return FileFacts(
        path,
        rows=rows,
        label="opinion",
        labels=("disliked", "liked"),
        columns={"words": "text", "city": "category"},
        options=("--label opinion", "--text words"),
    )
