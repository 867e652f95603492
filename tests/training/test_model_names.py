"""Names of a model are the same with and without a second reading of the text."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from thresher import FTRLClassifier, TruncatedGradientClassifier, scan
from thresher.data.distinct import distinct_keys
from thresher.data.source import Source
from thresher.model.name_arrays import NameArrays, only
from thresher.training import model_names


def write(path, seed, rows=300):
    rng = np.random.default_rng(seed)
    text = "".join(
        f"{rng.choice([-1, 1])} |a {' '.join(f'w{i}' for i in rng.integers(0, 400, 6))} |b é{seed} "
        f"| 17 18:2\n"
        for _ in range(rows)
    ).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


@pytest.fixture
def files(tmp_path):
    return [write(tmp_path / "a.vw", 1), write(tmp_path / "b.vw.gz", 2)]


def names_of(files, monkeypatch, most, estimator=TruncatedGradientClassifier, **options):
    monkeypatch.setattr(model_names, "MOST_BYTES", most)
    clf = estimator(passes=2, random_state=0, store="hashed").fit(scan(files, **options))
    return clf.model_


@pytest.mark.parametrize("options", [{}, {"bits": 6}, {"interactions": ["ab"]}, {"threads": 3}])
def test_names_with_and_without_a_second_reading(files, monkeypatch, options):
    collected = names_of(files, monkeypatch, 1 << 26, **options)
    again = names_of(files, monkeypatch, 0, **options)
    assert isinstance(collected.names, NameArrays)
    assert isinstance(again.names, dict)
    assert collected.names == again.names
    assert list(collected.names) == list(again.names)


@pytest.mark.parametrize("shuffle", [False, "once"])
def test_no_second_reading(files, monkeypatch, shuffle):
    monkeypatch.setattr(Source, "names", None)
    clf = FTRLClassifier(passes=1, store="hashed", shuffle=shuffle, random_state=0)
    model = clf.fit(scan(files)).model_
    assert {"a^w1", "b^é1", "b^é2"} <= set(model.names.values())


def test_further_fits_keep_the_names_of_earlier_ones(tmp_path):
    one, two = write(tmp_path / "1.vw", 1, 20), write(tmp_path / "2.vw", 2, 20)
    clf = FTRLClassifier(passes=1, store="hashed", l1=0.0).partial_fit(scan(one), classes=[-1, 1])
    clf.partial_fit(scan(two))
    assert {"b^é1", "b^é2"} <= set(clf.model_.names.values())


def test_names_that_are_not_utf8(tmp_path, monkeypatch):
    path = tmp_path / "odd.vw"
    path.write_bytes(b"1 |\xc3 \xa9x \xffy plain\n-1 |b caf\xc3\xa9 |\xc3\n" * 30)
    collected = names_of([str(path)], monkeypatch, 1 << 26)
    assert collected.names == names_of([str(path)], monkeypatch, 0).names
    assert "�^�x" in collected.names.values()


def test_models_with_both_kinds_of_names_have_equal_files(files, monkeypatch, tmp_path):
    for name, most in (("one", 1 << 26), ("two", 0)):
        names_of(files, monkeypatch, most).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_name_arrays_are_like_a_dict():
    known = {5: "five", 2**64 - 1: "", 0: "nüll"}
    names = NameArrays.of(known)
    for wrong in (1, 6, 2**64 - 2, 2**64, -1, 1.5, "5", None):  # before the dict is made
        with pytest.raises(KeyError):
            names[wrong]
    assert [names[np.uint64(key)] for key in known] == list(known.values())
    assert "_dict" not in vars(names)
    with pytest.raises(KeyError):
        NameArrays.of({})[0]
    assert names == known
    assert known == names
    assert names != {**known, 1: "x"}
    assert dict(names) == known
    assert (names[5], names[2**64 - 1], names[0], names.get(3), names.get("x")) == (
        "five", "", "nüll", None, None,
    )  # fmt: skip
    assert (0 in names, 1 in names, len(names)) == (True, False, 3)
    assert repr(names) == repr({key: known[key] for key in sorted(known)})
    chosen = np.array([0, 3, 5], np.uint64)
    assert names.only(chosen) == {0: "nüll", 5: "five"} == only(known, chosen)
    assert names.only(np.zeros(0, np.uint64)) == {}


def test_distinct_features():
    some = [np.array([1, 5], np.uint64), np.array([0, 5, 2**64 - 1], np.uint64)]
    assert distinct_keys(some).tolist() == [0, 1, 5, 2**64 - 1]
    assert distinct_keys(some[:1]).tolist() == [1, 5]
    assert distinct_keys([]).tolist() == []
