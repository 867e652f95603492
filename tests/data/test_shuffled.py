"""Rows of a source in random order."""

import numpy as np
import pytest

from support.files import svmlight, vw
from thresher import DataError, FTRLClassifier, scan
from thresher.data.shuffled import ShuffledSource


def rows_of(source, **reading):
    """Return the rows of a source: label, weight, and the features with their values."""
    found = []
    for block in source.blocks(**reading):
        native = block.native
        starts, keys, values = map(np.asarray, (native.starts, native.keys, native.values))
        weights = np.ones(block.rows) if block.weights is None else block.weights
        for r in range(block.rows):
            at = slice(starts[r], starts[r + 1])
            pairs = zip(keys[at].tolist(), values[at].tolist(), strict=True)
            found.append((block.labels[r], weights[r], *pairs))
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["rows.svm", "rows.vw", "rows.csv"])
def test_the_same_rows_in_another_order(tmp_path, form, dtype):
    svmlight(tmp_path / "rows.svm", rows=300)
    vw(tmp_path / "rows.vw", rows=300)
    lines = [f"{'yes' if i % 3 else 'no'},{i / 7:.3f},{i % 5}\n" for i in range(300)]
    (tmp_path / "rows.csv").write_text("label,a,b\n" + "".join(lines))
    stored = rows_of(scan(tmp_path / form), dtype=dtype)
    source = ShuffledSource(scan(tmp_path / form), 0)
    shuffled = rows_of(source, dtype=dtype)
    assert shuffled != stored
    assert sorted(shuffled, key=str) == sorted(stored, key=str)
    assert rows_of(source, dtype=dtype) == shuffled  # again
    assert rows_of(ShuffledSource(scan(tmp_path / form), 0), dtype=dtype) == shuffled
    assert rows_of(ShuffledSource(scan(tmp_path / form), 1), dtype=dtype) != shuffled


def test_rows_after_a_position_and_of_several_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("thresher.data.buckets._ROWS", 64)
    source = ShuffledSource(scan(svmlight(tmp_path / "rows.svm", rows=300)), 0)
    blocks = list(source.blocks())
    assert [block.rows for block in blocks] == [64, 64, 64, 64, 44]
    whole = rows_of(source)
    assert rows_of(source, after=blocks[2].end) == whole[192:]


def test_names_bits_and_models(tmp_path):
    file = vw(tmp_path / "rows.vw", rows=300)
    source = ShuffledSource(scan(file, bits=12), 0)
    assert source.bits == 12
    assert source.named
    learned = FTRLClassifier(passes=2, random_state=0).fit(source)
    assert {feature.name.partition("^")[0] for feature in learned.model_.top(20)} <= {"word", "age"}
    assert (learned.predict(scan(file, bits=12)) == learned.predict(scan(file, bits=12))).all()
    assert source.described() == scan(file, bits=12).described()


def test_errors_name_the_line_of_the_file(tmp_path):
    lines = svmlight(tmp_path / "rows.svm", rows=50).read_text().splitlines()
    lines[7] = lines[7].replace(lines[7].split()[0], "3", 1)
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    source = ShuffledSource(scan(tmp_path / "rows.svm"), 0)
    with pytest.raises(DataError, match=r"rows\.svm:8"):
        FTRLClassifier(random_state=0).fit(source, classes="binary")
    (tmp_path / "rows.svm").write_text("1 1:x\n")
    with pytest.raises(DataError, match=r"rows\.svm:1:5"):
        list(ShuffledSource(scan(tmp_path / "rows.svm"), 0).blocks())


def test_each_row_knows_its_place(tmp_path):
    files = [svmlight(tmp_path / f"rows-{k}.svm", rows=40 + k, seed=k) for k in range(3)]
    (block,) = ShuffledSource(scan(files), 0).blocks()
    places = {block.place(row) for row in range(block.rows)}
    assert places == {f"{tmp_path}/rows-{k}.svm:{i + 1}" for k in range(3) for i in range(40 + k)}


def test_bad_lines_are_skipped_once(tmp_path):
    file = svmlight(tmp_path / "rows.svm", rows=50)
    file.write_text(file.read_text() + "1 1:x\n")
    inner = scan(file, on_bad_line="skip")
    assert sum(block.rows for block in ShuffledSource(inner, 0).blocks()) == 50
    assert inner.bad_lines.count == 1
