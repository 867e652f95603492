"""The layout of rows does not change a model: threads, files, compression, caches, iterators."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import svmlight, vw
from support.source_cases import RULES, fitted, made, same
from thresher.data.writing import write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def rows(folder):
    """A file, and its rows as a matrix."""
    path = svmlight(folder / "rows.svm", rows=300)
    X, y = load_svmlight_file(str(path))
    return path, X, y.astype(int)


@pytest.fixture(scope="module")
def large(folder):
    """A file of several blocks of a megabyte."""
    return svmlight(folder / "large.svm", rows=600, repeat=100)


def test_one_thread_equals_many(large, folder):
    assert large.stat().st_size > 3 << 20
    one = fitted(thresher.scan(large, threads=1)).model_
    for threads in (2, 5):
        same(fitted(thresher.scan(large, threads=threads)).model_, one)
    words = vw(folder / "words.vw", rows=20_000)
    one = fitted(thresher.scan(words, threads=1)).model_
    same(fitted(thresher.scan(words, threads=4)).model_, one)


def test_compressed_equals_plain(rows):
    path, _, _ = rows
    plain = fitted(thresher.scan(path)).model_
    content = path.read_bytes()
    zstandard = pytest.importorskip("zstandard")
    compressors = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lambda text: lzma.compress(text, preset=0),
        "zst": zstandard.ZstdCompressor().compress,
    }
    for suffix, compress in compressors.items():
        compressed = path.with_name(f"{path.name}.{suffix}")
        compressed.write_bytes(compress(content))
        same(fitted(thresher.scan(compressed)).model_, plain)


def test_cache_equals_text(large, folder):
    for path in (large, vw(folder / "named.vw", rows=500)):
        cache = folder / f"{path.name}.cache"
        write(thresher.scan(path), str(cache), "cache")
        by_text, by_cache = fitted(thresher.scan(path)), fitted(thresher.scan(cache))
        same(by_cache.model_, by_text.model_)
        assert by_cache.model_.names == by_text.model_.names


def test_several_files_equal_one(large, folder):
    lines = large.read_text().splitlines(keepends=True)
    for number, start in enumerate(range(0, len(lines), 10_000)):
        text = "".join(lines[start : start + 10_000])
        if number == 1:
            text = text.removesuffix("\n")  # the end of the file ends the line
        (folder / f"shard{number}.svm").write_text(text)
    whole = fitted(thresher.scan(large)).model_
    same(fitted(thresher.scan(folder / "shard?.svm")).model_, whole)
    same(fitted(thresher.scan([folder / f"shard{n}.svm" for n in range(6)])).model_, whole)


def test_iterators_of_batches(rows):
    _, X, y = rows
    parts = lambda: ((X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70))  # noqa: E731
    params = {"l1": 0.5, "store": "hashed"}
    same(
        fitted(thresher.scan(parts)).model_, made(thresher.FTRLClassifier, params).fit(X, y).model_
    )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_batches_of_an_iterator_have_the_feature_numbers_of_a_matrix(rows, kind, store):
    _, X, y = rows
    X = kind(X.toarray())
    parts = lambda: ((X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70))  # noqa: E731
    for rule in ("ftrl", "mirror"):
        if rule == "mirror" and store == "hashed":
            continue
        clf = made(*RULES[rule], store=store).fit(thresher.scan(parts))
        expected = made(*RULES[rule], store=store).fit(X, y)
        same(clf.model_, expected.model_)
        assert clf.n_features_in_ == X.shape[1]
        assert clf.predict(X).tolist() == expected.predict(X).tolist()
    once = made(*RULES["ftrl"], store=store)
    once.partial_fit(thresher.scan(parts()), classes=[-1, 1])
    assert once.predict(X).shape == (300,)
    whole = thresher.CoordinateDescentClassifier(l1=0.01).fit(thresher.scan(parts))
    assert whole.n_features_in_ == X.shape[1]


def test_examples_as_dicts():
    examples = [({"ad": 1.0, "user^anna": 2.0}, 1), ({"loan": 1.0}, 0)] * 50
    clf = fitted(thresher.scan(lambda: iter(examples)))
    assert set(clf.model_.names.values()) == {"ad", "user^anna", "loan"}
    once = made(thresher.FTRLClassifier, {"l1": 0.5, "store": "hashed"})
    once.partial_fit(thresher.scan(iter(examples)), classes=[0, 1])
    same(once.model_, clf.model_)
    assert once.model_.names == clf.model_.names
