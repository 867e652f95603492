"""Loaders for the real data sets used by the benchmarks.

The files are looked up in the folder named by ``THRESHER_DATA``, else in ``../shared/data``
next to the repository. Parsed sets are cached in the folder named by ``THRESHER_CACHE``, else
in ``thresher-datasets`` under the system's temporary folder. As a script: prints a table.

Notes
-----
* No constant feature is added to any set.
* ``dexter_scaled`` is as published: each half is column-scaled by itself.
* Newsgroup messages are used whole, headers included; vocabulary and idf come from the
  training folder of the by-date split (published results: random split). Training rows
  are shuffled once with a fixed seed because the folders are sorted by class.
* UCI sets: identifiers are dropped, and so is the follow-up time of ``wpbc``, which is
  known only together with the outcome. Categories are one-hot over the whole file, so
  that the width does not depend on the split. A missing value, numeric or categorical,
  has no entry in the row. Test values may leave [0, 1].
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import lzma
import os
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["Dataset", "load", "names"]

Task: TypeAlias = Literal["binary", "multiclass", "regression"]
Array: TypeAlias = npt.NDArray[Any]
Folder: TypeAlias = str | os.PathLike[str] | None
Parts: TypeAlias = tuple[sp.csr_matrix, Array, sp.csr_matrix, Array]

_SEED = 20_090_101  # of every random split and shuffle
_CACHE_VERSION = 1  # raise it whenever a parser changes what it returns
_CRX = (0, 3, 4, 5, 6, 8, 9, 11, 12)  # the categorical columns of crx


@dataclass(frozen=True, eq=False)
class Dataset:
    """One data set, split into a training and a test part.

    Attributes
    ----------
    name : str
        Name of the set.
    X_train, X_test : scipy.sparse.csr_matrix
        Rows with float32 values and int32 indices.
    y_train, y_test : numpy.ndarray
        -1/+1 (float64) for binary, class numbers from 0 (int64) for multiclass,
        the target (float64) for regression.
    task : {"binary", "multiclass", "regression"}
        Kind of the target.
    """

    name: str
    X_train: sp.csr_matrix
    y_train: Array
    X_test: sp.csr_matrix
    y_test: Array
    task: Task


def _signs(y: Array) -> Array:
    """Map two-valued labels to -1/+1, positive (or true) ones to +1."""
    return np.where(y > 0, 1.0, -1.0)


def _draw(y: Array, share: float, stratified: bool) -> tuple[Array, Array]:
    """Draw shuffled row numbers of a training part of size `share` and of the rest."""
    rng = np.random.default_rng(_SEED)
    order = rng.permutation(y.size)
    groups = [order[y[order] == c] for c in np.unique(y)] if stratified else [order]
    train = np.concatenate([g[: round(share * g.size)] for g in groups])
    test = np.concatenate([g[round(share * g.size) :] for g in groups])
    return rng.permutation(train), rng.permutation(test)


def _sparse(paths: list[Path], width: int) -> Parts:
    """Read 1-based svmlight or VW text: train and test files, or one file split 70/30."""
    from sklearn.datasets import load_svmlight_file

    parts: list[Any] = []
    for path in paths:
        # `label |namespace index:value ...` without its namespace is a svmlight line.
        text = io.BytesIO(re.sub(rb"\|\S*", b"", lzma.decompress(path.read_bytes())))
        x, y = load_svmlight_file(text, n_features=width, dtype=np.float32, zero_based=False)
        y = _signs(y)
        parts += [x, y]
    if len(paths) == 1:
        train, test = _draw(y, 0.7, stratified=True)
        return x[train], y[train], x[test], y[test]
    return parts[0], parts[1], parts[2], parts[3]


def _news(paths: list[Path], pair: str) -> Parts:
    """Make tf-idf rows of the top-level groups `pair`, +1 first; "" for all 20 classes."""
    from sklearn.feature_extraction import text as sk

    found: list[tuple[str, str, bytes]] = []
    with tarfile.open(paths[0], "r:xz") as archive:
        for member in archive:
            group = Path(member.name).parent.name
            wanted = not pair or group.split(".")[0] in pair.split()
            if member.isfile() and wanted and (stream := archive.extractfile(member)):
                found.append((member.name, group, stream.read()))
    found.sort()
    groups = np.array([group for _, group, _ in found])
    is_train = np.array([Path(name).parts[0].endswith("train") for name, _, _ in found])
    y: Array = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    if pair:
        y = _signs(np.char.startswith(groups, pair.split()[0] + "."))
    train = np.random.default_rng(_SEED).permutation(np.flatnonzero(is_train))
    test = np.flatnonzero(~is_train)
    tfidf = sk.TfidfVectorizer(norm=None, encoding="latin-1")  # `load` scales the rows
    x_train = tfidf.fit_transform([found[i][2] for i in train])
    return x_train, y[train], tfidf.transform([found[i][2] for i in test]), y[test]


def _table(
    paths: list[Path],
    positive: str | None,
    label: int = -1,
    drop: Collection[int] = (),
    onehot: Collection[int] = (),
    header: bool = False,
    comma: str | None = ",",
) -> Parts:
    """Read a UCI table, split 75/25.

    `positive` is the label of class +1, None for regression; `drop` and `onehot` are
    column numbers; `comma` is the separator, None for white space.
    """
    lines = [line for line in paths[0].read_text("ascii").splitlines() if line.strip()]
    cells = np.array([[c.strip() for c in line.split(comma)] for line in lines[header:]])
    target = cells[:, label]
    is_real = positive is None  # zoo writes its class numbers as y1 .. y7
    y = np.char.lstrip(target, "y").astype(float) if is_real else _signs(target == positive)
    train, test = _draw(y, 0.75, stratified=False)
    blocks: list[Array] = []
    for j in sorted(set(range(cells.shape[1])) - {label % cells.shape[1], *drop}):
        known = cells[:, j] != "?"
        if j in onehot:
            blocks.append(cells[:, j, None] == np.unique(cells[known, j]))
            continue
        column = np.where(known, cells[:, j], "nan").astype(np.float64)
        low, high = np.nanmin(column[train]), np.nanmax(column[train])
        column = (column - low) / (high - low if high > low else 1.0)
        blocks.append(np.nan_to_num(column, nan=0.0)[:, None])
    x = sp.csr_matrix(np.hstack(blocks).astype(np.float32))
    return x[train], y[train], x[test], y[test]


# name -> files (training first) and the parser that turns their paths into the parts
_SETS: dict[str, tuple[list[str], Callable[[list[Path]], Parts]]] = {}
for _name, _width, *_stems in (
    ("dexter_scaled", 7_751, "dexter_scaled_train.svm", "dexter_scaled_valid.svm"),
    ("dorothea", 100_000, "dorothea_train.svm", "dorothea_valid.svm"),
    ("arcene", 10_000, "arcene_train.svm", "arcene_valid.svm"),
    ("basehock", 4_862, "basehock.svm"),
    ("relathe", 4_322, "relathe.svm"),
    ("pcmac", 3_289, "pcmac.svm"),
    ("a9a", 123, "a9a.svm", "a9a.t.svm"),
    ("agaricus", 126, "agaricus_train.svm", "agaricus_test.svm"),
    ("rcv1_small", 47_236, "rcv1_small.vw", "rcv1_small_test.vw"),
):
    _SETS[str(_name)] = ([f"{s}.xz" for s in _stems], partial(_sparse, width=int(_width)))
for _pair in ("comp rec", "comp sci", "comp talk", "rec talk", "sci rec", "sci talk", ""):
    _name = _pair.replace(" ", "_vs_") or "news20"
    _SETS[_name] = (["20news-bydate.tar.xz"], partial(_news, pair=_pair))
for _name, _file, _options in (
    ("spambase", "spambase.data", {"positive": "1"}),
    ("mushroom", "agaricus-lepiota.data", {"positive": "p", "label": 0, "onehot": range(23)}),
    ("krvskp", "kr-vs-kp.keel.dat", {"positive": "won", "onehot": range(36)}),
    ("magic04", "magic04.data", {"positive": "g"}),
    ("crx", "crx.data", {"positive": "+", "onehot": _CRX, "header": True}),
    ("housing", "housing.data", {"positive": None, "comma": None}),
    ("wbc", "breast-cancer-wisconsin.data", {"positive": "4", "drop": (0,)}),
    ("wdbc", "wdbc.data", {"positive": "M", "label": 1, "drop": (0,)}),
    ("wpbc", "wpbc.data", {"positive": "R", "label": 1, "drop": (0, 2)}),
    ("zoo", "zoo.data", {"positive": None, "header": True}),
):
    _SETS[_name] = ([f"uci/{_file}"], partial(_table, **_options))
_TASKS: dict[str, Task] = {"news20": "multiclass", "housing": "regression", "zoo": "regression"}


def _csr(x: sp.csr_matrix, unit_norm: bool = False) -> sp.csr_matrix:
    """Return `x` as float32/int32 CSR without stored zeros, its rows at norm 1 if asked."""
    x = sp.csr_matrix(x, dtype=np.float32, copy=True)
    x.sum_duplicates()
    x.eliminate_zeros()
    if unit_norm:
        rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        squares = np.bincount(rows, np.square(x.data, dtype=np.float64), x.shape[0])
        x.data = (x.data / np.sqrt(squares)[rows]).astype(np.float32)
    x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)
    return x


def _cached(name: str, paths: list[Path]) -> Parts:
    """Return the parts of `name` from the cache, else parse and try to cache them."""
    stats = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]
    digest = hashlib.sha256(repr((_CACHE_VERSION, stats)).encode()).hexdigest()[:16]
    root = os.environ.get("THRESHER_CACHE") or Path(tempfile.gettempdir(), "thresher-datasets")
    file = Path(root, f"{name}-{digest}.npz")
    try:
        with np.load(file, allow_pickle=False) as z:
            a, b = (sp.csr_matrix((z[s + "x"], z[s + "i"], z[s + "p"]), z[s + "n"]) for s in "ab")
            return a, z["ay"], b, z["by"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        pass  # absent or damaged: parse the files
    a, y_a, b, y_b = _SETS[name][1](paths)
    a, b = _csr(a), _csr(b)
    arrays: dict[str, Any] = {"ay": y_a, "by": y_b}
    for s, m in (("a", a), ("b", b)):
        arrays |= {s + "x": m.data, s + "i": m.indices, s + "p": m.indptr, s + "n": m.shape}
    with contextlib.suppress(OSError):  # a cache that cannot be written is no error
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            np.savez(Path(folder, file.name), **arrays)
            os.replace(Path(folder, file.name), file)
    return a, y_a, b, y_b


def _paths(name: str, data_dir: Folder) -> list[Path]:
    """Return the paths of the files of `name`, whether or not they exist."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return [Path(data_dir or os.environ.get("THRESHER_DATA") or default, f) for f in _SETS[name][0]]


def names(data_dir: Folder = None) -> list[str]:
    """Return the names of the sets whose files are all present in the data folder."""
    return [n for n in _SETS if all(p.is_file() for p in _paths(n, data_dir))]


def load(name: str, data_dir: Folder = None, *, unit_norm: bool = True) -> Dataset:
    """Load one data set.

    Parameters
    ----------
    name : str
        Name of the set.
    data_dir : path-like, optional
        Data folder; by default THRESHER_DATA, else ``../shared/data``.
    unit_norm : bool, default=True
        Scale every row to Euclidean norm 1 (empty rows stay empty).

    Returns
    -------
    Dataset
        The training and the test part.

    Raises
    ------
    FileNotFoundError
        If a file of the set is absent from the data folder.
    ValueError
        If there is no set of that name.
    """
    if name not in _SETS:
        raise ValueError(f"unknown data set {name!r}; known: {', '.join(_SETS)}")
    paths = _paths(name, data_dir)
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"data set {name!r} needs {path}; set THRESHER_DATA")
    a, y_a, b, y_b = _cached(name, paths)
    a, b = _csr(a, unit_norm), _csr(b, unit_norm)
    return Dataset(name, a, y_a, b, y_b, _TASKS.get(name, "binary"))


def _main() -> None:
    """Print a table of the available sets."""
    row = "{:14}{:>7}{:>7}{:>10}{:>9}{:>9}{:>7}".format
    print(row("name", "train", "test", "features", "nnz/row", "classes", "pos %"))
    for name in names():
        d = load(name)
        (n, width), m = d.X_train.shape, d.X_test.shape[0]
        y = np.concatenate([d.y_train, d.y_test])
        density = f"{(d.X_train.nnz + d.X_test.nnz) / (n + m):.1f}"
        classes = "-" if d.task == "regression" else np.unique(y).size
        share = f"{100 * np.mean(y > 0):.1f}" if d.task == "binary" else "-"
        print(row(name, n, m, width, density, classes, share))


if __name__ == "__main__":
    _main()
