"""Loads data sets: finds their files and parses them, or reads the cache of an earlier call."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import tempfile
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from thresher.atomic import written_whole
from thresher.datasets.catalogue import SPECS, STREAMED, DatasetSpec, Task
from thresher.datasets.files import VARIABLE, Folder, find, folder_of, is_known
from thresher.datasets.parts import Array, Parts
from thresher.errors import ParameterError, setting

if TYPE_CHECKING:
    from thresher.data.source import Source

_CACHE_VERSION = 3  # increase it when a parser returns something else


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
    X_valid, y_valid : scipy.sparse.csr_matrix and numpy.ndarray, or None
        Rows for the choice of parameters, if the split has them.
    """

    name: str
    X_train: Any
    y_train: Array
    X_test: Any
    y_test: Array
    task: Task
    X_valid: Any = None
    y_valid: Array | None = None


def names(folder: Folder = None) -> list[str]:
    r"""Return the names of the sets whose files are present.

    Parameters
    ----------
    folder : path-like, optional
        Folder of the files; by default the value of THRESHER_DATA.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresher import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "gisette_scale").write_text("+1 1:0.5 7:1\n-1 2:1\n")
    ...     _ = Path(folder, "gisette_scale.t").write_text("-1 3:1\n")
    ...     datasets.names(folder)
    ['gisette']
    """
    place = folder_of(folder)
    return [name for name, spec in SPECS.items() if _absent(spec, place) is None]


def load(
    name: str,
    folder: Folder = None,
    *,
    unit_norm: bool = True,
    split: Literal["published", "random"] = "published",
) -> Dataset:
    r"""Load one data set.

    Parameters
    ----------
    name : str
        Name of the set.
    folder : path-like, optional
        Folder of the files; by default the value of THRESHER_DATA.
    unit_norm : bool, default=True
        Scale every row to Euclidean norm 1 (empty rows stay empty).
    split : {"published", "random"}
        "published": the parts of the files, if they have parts. "random": rows are drawn with a
        fixed seed, in the sizes of Xie et al. (2010), with a validation part; for pairs of
        newsgroups, rcv1 and webspam.

    Returns
    -------
    Dataset
        The training and the test part.

    Raises
    ------
    FileNotFoundError
        A file of the set is not in the folder.
    ParameterError
        There is no set of that name, or the set has no such split.
    DataError
        A file cannot be parsed.

    Warns
    -----
    UserWarning
        The checksum of a file differs from the known one; see `verify`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresher import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "gisette_scale").write_text("+1 1:0.5 7:1\n-1 2:1\n")
    ...     _ = Path(folder, "gisette_scale.t").write_text("-1 3:1\n")
    ...     data = datasets.load("gisette", folder)
    >>> data.X_train.shape, data.y_train.tolist(), data.task
    ((2, 5000), [1.0, -1.0], 'binary')
    """
    if name in STREAMED:
        raise ParameterError(f"name: {name!r} is too large to load; see thresher.datasets.sources")
    spec = _spec(name)
    if split not in ("published", "random"):
        raise ParameterError(
            f"split must be 'published' or 'random', not {split!r}", parameter="split", value=split
        )
    if split == "random" and spec.drawn is None:
        able = ", ".join(name for name, spec in SPECS.items() if spec.drawn)
        raise ParameterError(
            (setting("split", "random"), f" exists for {able}; not for {name!r}"),
            parameter="split",
            value=split,
        )
    parts = _cached(name, split, _paths(name, folder))
    rows = [(_csr(x, unit_norm), y) for x, y in parts]
    (a, y_a), (b, y_b) = rows[:2]
    return Dataset(name, a, y_a, b, y_b, spec.task, *(rows[2] if len(rows) > 2 else ()))


def sources(name: str, folder: Folder = None) -> tuple[Source, Source | None]:
    r"""Return the training and test files of a set as sources, which are read in blocks.

    For large sets: ``fit(sources("webspam")[0])``. Rows are not scaled.

    Parameters
    ----------
    name : str
        A set of svmlight or VW files, or ``big_ads``, whose files may have any format.
    folder : path-like, optional
        Folder of the files; by default the value of THRESHER_DATA.

    Returns
    -------
    tuple of Source
        The second is None if the set has only one file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresher import TruncatedGradientClassifier, datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "big_ads_train.vw").write_text("1 |a shoes\n-1 |a books\n")
    ...     _ = Path(folder, "big_ads_test.vw").write_text("1 |a shoes\n")
    ...     train, test = datasets.sources("big_ads", folder)
    ...     clf = TruncatedGradientClassifier(store="hashed").fit(train)
    ...     clf.predict(test).tolist()
    [1]
    """
    from thresher.data.scan import scan

    if name in STREAMED:
        place = folder_of(folder)
        found = [sorted(place.glob(f"{stem}.*")) for stem in STREAMED[name]]
        if not found[0]:
            raise FileNotFoundError(f"data set {name!r} needs {place / STREAMED[name][0]}.*")
        train, test = (scan(files) if files else None for files in found)
        assert train is not None
        return train, test
    if not _spec(name).streams:
        raise ParameterError(
            f"name: {name!r} is not svmlight or VW text; see thresher.datasets.load"
        )
    paths = _paths(name, folder)
    return scan(paths[0]), scan(paths[1]) if len(paths) > 1 else None


def verify(name: str, folder: Folder = None) -> list[str]:
    r"""Return the files of a set whose checksum differs from the known one.

    Files without a known checksum are not in the list.

    Parameters
    ----------
    name : str
        Name of the set.
    folder : path-like, optional
        Folder of the files; by default the value of THRESHER_DATA.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresher import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "pcmac.svm").write_text("1 1:1\n")
    ...     datasets.verify("pcmac", folder)
    ['pcmac.svm']
    """
    return [path.name for path in _paths(name, folder) if is_known(path) is False]


def _spec(name: str) -> DatasetSpec:
    if name not in SPECS:
        known = ", ".join([*SPECS, *STREAMED])
        raise ParameterError(f"name: no data set {name!r}; there are: {known}")
    return SPECS[name]


def _absent(spec: DatasetSpec, place: Path) -> str | None:
    """Return the first file that is needed and missing."""
    needed = spec.files[: spec.needed]
    return next((file for file in needed if find(place, file) is None), None)


def _paths(name: str, folder: Folder) -> list[Path]:
    spec, place = _spec(name), folder_of(folder)
    absent = _absent(spec, place)
    if absent is not None:
        raise FileNotFoundError(
            f"data set {name!r} needs {absent} (plain, .xz, .bz2 or .gz) in {place}; "
            f"set another folder with the argument folder or with {VARIABLE}"
        )
    return [path for file in spec.files if (path := find(place, file)) is not None]


def _csr(x: Any, unit_norm: bool = False) -> Any:
    """Return `x` as float32/int32 CSR without stored zeros; with `unit_norm`, rows of norm 1."""
    x = sp.csr_matrix(x, dtype=np.float32, copy=True)
    x.sum_duplicates()
    x.eliminate_zeros()
    if unit_norm:
        rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        squares = np.bincount(rows, np.square(x.data, dtype=np.float64), x.shape[0])
        x.data = (x.data / np.sqrt(squares)[rows]).astype(np.float32)
    x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)
    return x


def _cached(name: str, split: str, paths: list[Path]) -> Parts:
    """Return the parts from the cache, or else parse the files and try to write the cache."""
    stats = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]
    digest = hashlib.sha256(repr((_CACHE_VERSION, split, stats)).encode()).hexdigest()[:16]
    root = _cache_folder()
    file = None if root is None else root / f"{name}-{digest}.npz"
    parts: Parts = []
    with contextlib.suppress(Exception):  # it is missing, or damaged in one of many ways
        if file is not None:
            parts, others = _read(file)
    if not parts:
        others = [number for number, path in enumerate(paths) if is_known(path) is False]
    for other in (paths[number] for number in others):
        warnings.warn(
            f"{other} differs from the known file {other.name}: "
            "results may differ from published ones",
            stacklevel=3,
        )
    if parts:
        return parts
    spec = SPECS[name]
    parse = spec.drawn if split == "random" and spec.drawn else spec.parse
    parts = [(_csr(x), y) for x, y in parse(paths)]
    with contextlib.suppress(OSError):  # works without a cache, too
        if file is not None:
            _write(file, parts, others)
    return parts


def _cache_folder() -> Path | None:
    """Return the folder of the cache, which other users cannot read; None if there is none.

    A folder that THRESHER_CACHE names is used as it is. The other one is in a place where all users
    may write: it is not used if another user made it, or may write to it.
    """
    chosen = os.environ.get("THRESHER_CACHE")
    folder = Path(chosen or Path(tempfile.gettempdir(), f"thresher-datasets-{os.getuid()}"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077
    return folder if chosen or own else None


def _read(file: Path) -> tuple[Parts, list[int]]:
    """Return the parts, and the numbers of the files whose checksum differs from the known one."""
    z = {}
    with zipfile.ZipFile(file) as members:
        for name in members.namelist():  # each is read to its end, where its checksum is compared
            content = io.BytesIO(members.read(name))
            z[name.removesuffix(".npy")] = np.load(content, allow_pickle=False)
    parts: Parts = [
        (sp.csr_matrix((z[f"x{i}"], z[f"i{i}"], z[f"p{i}"]), tuple(z[f"n{i}"])), z[f"y{i}"])
        for i in range(int(z["parts"]))
    ]
    return parts, z["others"].tolist()


def _write(file: Path, parts: Parts, others: list[int]) -> None:
    arrays: dict[str, Any] = {"parts": len(parts), "others": np.array(others, np.int64)}
    for i, (x, y) in enumerate(parts):
        arrays |= {f"x{i}": x.data, f"i{i}": x.indices, f"p{i}": x.indptr, f"n{i}": x.shape}
        arrays[f"y{i}"] = y
    with written_whole(file) as out:
        np.savez(out, **arrays)
