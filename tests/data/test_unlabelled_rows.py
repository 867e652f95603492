"""Rows without a label: bad lines for training, if bad lines are left out."""

import gzip

import numpy as np
import pytest

import thresher
from thresher import FTRLClassifier, FTRLRegressor, OnePassSearchCV, scan
from thresher.data.label_checks import refuse
from thresher.errors import DataError, InputError

pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")

from support.files import called  # noqa: E402
from support.tables import csv_file, table_file  # noqa: E402

FULL = [(1, 1.0), (0, 2.0), (1, 1.5), (0, 2.5)] * 5


def files(folder):
    """Write rows with a label, and the same with two more rows without one, in all formats."""
    for name, rows in (("full", FULL), ("holes", [(None, 9.0), *FULL, (None, 8.0)])):
        shown = [("" if y is None else y, x) for y, x in rows]
        csv_file(folder, "".join(f"{y} 1:{x}\n" for y, x in shown), f"{name}.svm")
        csv_file(folder, "".join(f"{y} |f a:{x}\n" for y, x in shown), f"{name}.vw")
        csv_file(folder, "y,a\n" + "".join(f"{y},{x}\n" for y, x in shown), f"{name}.csv")
        columns = {"y": [y for y, _ in rows], "a": [x for _, x in rows]}
        table_file(folder, columns, f"{name}.parquet")
        words = [None if y is None else "ny"[y] for y, _ in rows]
        table_file(folder, {**columns, "y": words}, f"{name}-words.parquet")


NAMES = [".vw", ".csv", ".parquet", "-words.parquet"]


@pytest.mark.parametrize("name", NAMES)
def test_they_are_left_out(tmp_path, name):
    files(tmp_path)
    full = (
        FTRLClassifier(store="hashed", passes=2, random_state=0)
        .fit(scan(tmp_path / f"full{name}"))
        .model_
    )
    path = tmp_path / f"holes{name}"
    source = scan(path, on_bad_line="skip")
    model = FTRLClassifier(store="hashed", passes=2, random_state=0).fit(source).model_
    assert model.weights.tolist() == full.weights.tolist()
    assert source.bad_lines.count == 2
    line = 2 if name.endswith("csv") else 1
    assert "2 bad lines left out; the first" in source.bad_lines.warning
    assert f"{path}:{line}" in source.bad_lines.first
    assert "the row has no label" in source.bad_lines.first
    assert len(model.predict(scan(path, on_bad_line="skip"))) == 22
    score = FTRLClassifier(store="hashed").fit(source).score(scan(path, on_bad_line="skip"))
    assert 0 <= score <= 1


@pytest.mark.parametrize("name", NAMES)
def test_they_are_an_error_by_default(tmp_path, name):
    files(tmp_path)
    path = tmp_path / f"holes{name}"
    with pytest.raises(DataError, match="the row has no label"):
        FTRLClassifier(store="hashed").fit(scan(path))
    assert sum(block.rows for block in scan(path).blocks()) == 22


def test_other_ways_to_train(tmp_path):
    files(tmp_path)
    path = tmp_path / "holes.vw"
    source = scan(path, on_bad_line="skip")
    full = (
        FTRLRegressor(store="hashed", random_state=0).fit(scan(tmp_path / "full.vw")).model_.weights
    )
    np.testing.assert_array_equal(
        FTRLRegressor(store="hashed", random_state=0).fit(source).model_.weights, full
    )
    search = OnePassSearchCV(FTRLClassifier(store="hashed"), {"l1": [0.0, 0.1]}, cv=2)
    search.fit(scan(path, on_bad_line="skip"))
    assert search.n_splits_ == 2


@pytest.mark.parametrize("name", ["svm", "vw", "csv"])
def test_quarantine(tmp_path, name):
    files(tmp_path)
    kept = tmp_path / "bad.txt"
    source = scan(tmp_path / f"holes.{name}", on_bad_line=f"quarantine={kept}")
    FTRLClassifier(store="hashed", passes=2, random_state=0).fit(source)
    lines = kept.read_text().splitlines()
    assert len(lines) == 2
    assert "9.0" in lines[0]
    assert "8.0" in lines[1]
    if name != "csv":
        assert lines[0] == {"svm": " 1:9.0", "vw": " |f a:9.0"}[name]


def test_quarantine_of_compressed_text(tmp_path):
    """Their lines are not known: reading them again would decompress the file up to them."""
    path, kept = tmp_path / "holes.vw.gz", tmp_path / "bad.txt"
    path.write_bytes(gzip.compress(b"1 |f a\n |f b\n0 |f c\n"))
    source = scan(path, on_bad_line=f"quarantine={kept}")
    assert [label for block in source.blocks() for label in block.labels] == [1, 0]
    assert kept.read_bytes() == b"\n"
    assert source.bad_lines.first == f"{path}:2:1: the row has no label"


def test_rows_without_labels_are_fine_with_any_number_of_labels(tmp_path):
    files(tmp_path)
    source = scan(tmp_path / "holes-words.parquet", multilabel=True, on_bad_line="skip")
    assert sum(block.rows for block in source.blocks()) == 22


@pytest.mark.parametrize("name", NAMES)
def test_they_can_be_left_out_without_leaving_out_bad_lines(tmp_path, name):
    files(tmp_path)
    rule = FTRLClassifier(store="hashed", passes=2, random_state=0)
    full = rule.fit(scan(tmp_path / f"full{name}")).model_
    path = tmp_path / f"holes{name}"
    source = scan(path, unlabelled="skip", threads=1)
    model = rule.fit(source).model_
    assert model.weights.tolist() == full.weights.tolist()
    assert source.bad_lines.count == 0
    assert "unlabelled" not in source.described()
    assert len(model.predict(scan(path))) == 22
    if name == ".vw":
        path.write_text(path.read_text() + "1 |f a:x\n")
        with pytest.raises(DataError, match=r"23:8: expected a finite number"):
            rule.fit(scan(path, unlabelled="skip"))


def test_the_shell_leaves_them_out(tmp_path):
    files(tmp_path)
    holes, model = tmp_path / "holes.vw", tmp_path / "m.thresher"
    called("train", tmp_path / "full.vw", "-m", model, "--quiet")
    expected = thresher.load(model)
    for more in ((), ("--cache", tmp_path / "rows.cache", "--passes", 1)):
        called("train", holes, "-m", model, "--unlabelled", "skip", "--quiet", *more)
        assert repr(thresher.load(model).weights) == repr(expected.weights)
    done = called("train", holes, "-m", model, "--unlabelled", "predict", code=2)
    assert "unlabelled" in done.stderr
    assert "error or skip" in done.stderr


def test_the_error_of_a_bad_label(tmp_path):
    (block,) = scan(csv_file(tmp_path, "1 1:2\n3 1:2\n", "rows.svm")).blocks(labelled=True)
    bad = np.array([False, True])
    with pytest.raises(InputError, match=r"svm:2:1: the row has no label; leave such rows out"):
        refuse(block, bad, lambda row: None)
    with pytest.raises(DataError, match=r"svm:2:1: row 1 is odd$"):
        refuse(block, bad, lambda row: f"row {row} is odd")
