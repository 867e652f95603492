"""tf-idf rows of the 20 newsgroups, from the archive of the by-date split."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from thresher.datasets.files import open_file
from thresher.datasets.parts import SEED, Array, Parts, draw_counts, signs
from thresher.errors import DataError

_FEWEST = 6  # a word of the random split is in at least this many messages


def parse(paths: list[Path], pair: str) -> Parts:
    """Return rows of two top-level groups, or of all groups as classes.

    Parameters
    ----------
    paths : list of Path
        The archive.
    pair : str
        The groups with a space between, class +1 first; "" for all 20 classes.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    names, groups, texts = _messages(paths[0], pair.split())
    is_train = np.array([Path(name).parts[0].endswith("train") for name in names])
    y: Array = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    if pair:
        y = _sides(groups, pair)
    train = np.random.default_rng(SEED).permutation(np.flatnonzero(is_train))
    test = np.flatnonzero(~is_train)
    tfidf = TfidfVectorizer(norm=None, encoding="latin-1")  # `load` scales the rows
    x_train = tfidf.fit_transform([texts[i] for i in train])
    return [(x_train, y[train]), (tfidf.transform([texts[i] for i in test]), y[test])]


def parse_drawn(paths: list[Path], pair: str, counts: Sequence[int]) -> Parts:
    """Return rows of two top-level groups, drawn at random from all their messages.

    Parameters
    ----------
    paths : list of Path
    pair : str
    counts : sequence of int
        Number of training, validation and test rows.
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    _, groups, texts = _messages(paths[0], [])
    counter = CountVectorizer(
        encoding="latin-1", token_pattern="[a-z]+", stop_words="english", min_df=_FEWEST
    )
    x = counter.fit_transform(texts)
    mine = np.isin([group.split(".")[0] for group in groups], pair.split())
    x, y = x[mine], _sides(groups[mine], pair)
    x = x[:, np.flatnonzero(np.bincount(x.indices, minlength=x.shape[1]))]
    train, valid, test = draw_counts(y.size, counts, sum(counts))
    idf = TfidfTransformer(norm=None).fit(x[train])
    return [(idf.transform(x[rows]), y[rows]) for rows in (train, test, valid)]


def _sides(groups: Array, pair: str) -> Array:
    return signs(np.char.startswith(groups, pair.split()[0] + "."))


def _messages(path: Path, wanted: Sequence[str]) -> tuple[list[str], Array, list[bytes]]:
    """Return paths, groups and texts of messages, sorted by path; `wanted`: top-level groups."""
    found: list[tuple[str, str, bytes]] = []
    try:
        with open_file(path) as file, tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                group = Path(member.name).parent.name
                right = not wanted or group.split(".")[0] in wanted
                if member.isfile() and right and (stream := archive.extractfile(member)):
                    found.append((member.name, group, stream.read()))
    except tarfile.TarError as error:
        raise DataError(f"{path}: {error}") from error
    if not found:
        raise DataError(f"{path}: there are no messages of {' and '.join(wanted) or 'any group'}")
    found.sort()
    groups = np.array([group for _, group, _ in found])
    return [name for name, _, _ in found], groups, [text for _, _, text in found]
