"""Formats are detected by the first bytes; if these do not decide, by the name."""

import gzip
import tarfile

import pytest

import thresher
from thresher.data.detect import detect_format
from thresher.data.open_streams import peek_bytes
from thresher.errors import DataError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"\x89TCache\n\0\1", "cache"),
        (b"PAR1\x15", "parquet"),
        (b"ARROW1\0\0", "arrow"),
        (b"1 |f a:0.5 b\n", "vw"),
        (b"| a b\n", "vw"),
        (b"\n\n-1 0.5 'tag |user u17 |ad a3\n", "vw"),
        (b"1 tag|user u17\n", "vw"),
        (b"|user:0.5 12:3\n", "vw"),
        (b",".join([b"12345"] * 60) + b"\n", "csv"),  # the time must not grow exponentially
        (b"1 3:0.5 17:1e-3\r\n-1 4:1\r\n", "svmlight"),
        (b"# made today\n+1 qid:3 1:2 # first\n", "svmlight"),
        (b"2 5 3\n1,2 3:0.5\n 4:1\n0 1:1\n", "svmlight"),
        (b"1\t3:0.5\n", "svmlight"),
        (b"1 3:0.5\n1 x:0.5\n1 4:1\n", "svmlight"),  # the reader reports the bad line
        (b"age,city,label\n31,Rome,1\n", "csv"),
        (b"age\tlabel\n31\t1\n", "csv"),
        (b"\xef\xbb\xbfid;label\n31;1\n", "csv"),
        (b"time,label\n12:30,1\n", "csv"),
        (b"text,label\nleft | right,1\n", "csv"),
        (b"", "svmlight"),
        (b"name|city\nAnn B.|New York\nBob|Rome\n", "csv"),
        (b"1.5 2 3\n-4 5e3 6\n\n7 8 9\n", "csv"),
    ],
)
def test_the_bytes_decide(tmp_path, text, expected):
    for name, data in (("clicks", text), ("wrong.gz", gzip.compress(text))):
        path = tmp_path / name
        path.write_bytes(data)
        assert detect_format(str(path)) == expected


@pytest.mark.parametrize("text", [b"hello world\n", b"1\n0\n", b"1 2\n3 x\n"])
def test_a_format_that_is_not_clear(tmp_path, text):
    path = tmp_path / "clicks"
    path.write_bytes(text)
    with pytest.raises(DataError, match=r"clicks: .*name it with format, one of svmlight, vw, csv"):
        detect_format(str(path))
    named = tmp_path / "clicks.vw.gz"
    named.write_bytes(gzip.compress(text))
    assert detect_format(str(named)) == "vw"  # then the name decides


def test_a_line_longer_than_the_bytes_that_are_read(tmp_path):
    path = tmp_path / "long"
    path.write_bytes(b"1 " + b" ".join(b"%d:1" % i for i in range(1, 40_000)))
    assert len(peek_bytes(str(path), 1 << 16)) < path.stat().st_size
    assert detect_format(str(path)) == "svmlight"


def test_lines_of_a_quoted_text_may_look_like_rows(tmp_path):
    """Messages quote others with bars; the first line of a file .csv is its header."""
    path = tmp_path / "messages.csv"
    path.write_bytes(b'label,text\nauto,"He wrote:\n' + b"|> a line\n1 2:3\n" * 20 + b'Yes."\n')
    assert detect_format(str(path)) == "csv"
    path.write_bytes(b"1 |f a,b\n" + b"1 |f a b\n" * 20)
    assert detect_format(str(path)) == "vw"


def test_models_are_no_data(tmp_path):
    model = thresher.FTRLClassifier(passes=1).fit([[1.0], [2.0]], [0, 1]).model_
    model.save(path := tmp_path / "clicks.thresher")
    with pytest.raises(DataError, match=r"clicks\.thresher: this is a model or a checkpoint"):
        detect_format(str(path))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_are_refused(tmp_path, mode, kind):
    table, path = tmp_path / "rows.csv", tmp_path / "rows.tar"
    table.write_text("label,text\n1,the orbit\n0,a car\n")
    with tarfile.open(path, mode, format=kind) as archive:
        archive.add(table, "rows.csv")
    with pytest.raises(DataError, match=r"rows\.tar is an archive \(tar\): unpack it first"):
        detect_format(str(path))
