"""Sources that estimators refuse, and readings that are stopped."""

import io
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import svmlight, vw
from support.source_cases import RULES, made, same
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


def test_labels_besides_a_source(rows):
    path, _, y = rows
    clf = made(*RULES["truncated"])
    with pytest.raises(thresher.ParameterError, match="has its own labels and weights"):
        clf.fit(thresher.scan(path), y)
    with pytest.raises(thresher.ParameterError, match="has its own labels and weights"):
        clf.partial_fit(thresher.scan(path), y, classes=[-1, 1])
    with pytest.raises(thresher.ParameterError, match="has its own labels and weights"):
        clf.fit(thresher.scan(path), sample_weight=np.ones(300))


def test_named_features_need_a_hashed_store_or_bits(folder):
    source = thresher.scan(vw(folder / "room.vw", rows=50))
    with pytest.raises(thresher.ParameterError, match="store='hashed', or bits="):
        made(thresher.FTRLClassifier, {}).fit(source)


def test_standard_input_is_read_once(rows, monkeypatch):
    path, _, _ = rows

    def pipe():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        return thresher.scan("-")

    clf = made(*RULES["truncated"])
    with pytest.raises(thresher.ParameterError, match="partial_fit with classes="):
        clf.fit(pipe())
    source = pipe()
    clf.partial_fit(source, classes=[-1, 1])
    same(clf.model_, made(*RULES["truncated"]).fit(thresher.scan(path)).model_)
    with pytest.raises(thresher.ParameterError, match="only once"):
        clf.partial_fit(source)
    with pytest.raises(thresher.ParameterError, match="once"):
        thresher.scan(["-", "-"])


def test_errors_name_the_place_of_bad_rows(folder):
    path = folder / "bad.svm"
    path.write_text("1 1:1\n-1 2:x\n")
    with pytest.raises(thresher.DataError, match=rf"^{path}:2:6: "):
        made(*RULES["truncated"]).fit(thresher.scan(path))
    path.write_text("1 1:1\n-1 2:1\n4 2:1\n")
    clf = made(*RULES["truncated"])
    with pytest.raises(thresher.DataError, match=rf"^{path}:3:1: the label 4 is not among"):
        clf.partial_fit(thresher.scan(path), classes=[-1, 1])
    assert not hasattr(clf, "classes_")  # a failed first call changes nothing


def test_scan_refuses(folder):
    with pytest.raises(FileNotFoundError):
        thresher.scan(folder / "absent.svm")
    with pytest.raises(thresher.ParameterError, match="format must be one of"):
        thresher.scan(folder, format="tar")
    with pytest.raises(thresher.ParameterError, match="bits must be"):
        thresher.scan(folder, bits=50)
    with pytest.raises(thresher.ParameterError, match="at least one"):
        thresher.scan([])
    path = folder / "plain.svm"
    path.write_text("1 1:1\n")
    for name, values, allowed in [
        ("missing", ["drop"], "one of error, zero, indicator"),
        ("dates", ["days", ""], "'parts'"),
        ("shuffle_buffer", [0, True, 1.5], "a number of rows >= 1"),
        ("threads", [0, 257], "from 1 to 256"),
        ("unlabelled", ["zero"], "error or skip"),
        ("interactions", [["abc"], ["a"]], "pairs of letters"),
    ]:
        for value in values:
            with pytest.raises(thresher.ParameterError, match=f"{name} must be {allowed}"):
                thresher.scan(path, **{name: value})
    with pytest.raises(thresher.ParameterError, match="'colour' is not an option of reading; the"):
        thresher.FTRLClassifier().fit(pd.DataFrame({"a": ["x"]}), [0], reading={"colour": 1})


def test_rows_with_lists_of_labels_are_not_gathered(folder):
    path = folder / "lists.svm"
    path.write_text("1 1:1\n")
    assert thresher.scan(path).gather().labels.tolist() == [1]
    path.write_text("1,2 1:1\n")
    with pytest.raises(thresher.DataError, match=r"lists\.svm:1: rows have lists of labels"):
        thresher.scan(path, multilabel=True).gather()
    path.write_text(f"1 {2**31 + 1}:1\n")
    with pytest.raises(thresher.ParameterError, match=r"up to 2147483648: too many.*set bits= in"):
        thresher.scan(path).gather().matrix()


def test_every_reading_can_be_stopped(folder):
    """`stops` is called before each block, and True ends the reading."""
    text = vw(folder / "stopped.vw", rows=20_000)
    readings = {
        "labels": lambda source: source.labels(),
        "width": lambda source: source.width(),
        "mean": lambda source: source.mean(),
        "names": lambda source: source.names([1]),
        "gather": lambda source: source.gather(),
    }
    for path in (text, write_cache(text, folder / "stopped.cache")):
        for name, reading in readings.items():
            source = thresher.scan(path, threads=1)
            assert len(list(source.blocks())) > 1
            calls = []

            def stops(calls=calls):
                calls.append(True)
                return len(calls) > 1

            source.stops = stops
            with pytest.raises(KeyboardInterrupt):
                reading(source)
            assert len(calls) == 2, name


def write_cache(source, path):
    write(thresher.scan(source), str(path), "cache")
    return path
