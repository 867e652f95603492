"""Bad input: a message of one line with the place, exit code 1, and no partial output."""

import bz2
import gzip
import lzma
import os
import subprocess

import pytest

import thresher
from support.files import THRESHER, called, svmlight

GOOD = "1 1:1 2:3\n-1 2:1\n"


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def told(folder, data, *options, code=1, command="train", **more):
    """Run a command that fails; check that it wrote no file; return its message."""
    before = left(folder)
    output = {"train": ["-m", folder / "model.thresher", "--quiet"], "convert": []}[command]
    done = called(command, data, *output, *options, code=code, **more)
    assert left(folder) == before
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


BAD = [
    (GOOD + "1 1:x\n", "3:5: expected a finite number; found \"x\""),
    (GOOD + "1 1:1.5.5\n", "3:8: expected a blank after the value; found \".5\""),
    (GOOD + "1 7\n", "3:4: expected ':' after the index; found the end of the line"),
    (GOOD + "1 1:1 7 3:1\n", "3:8: expected ':' after the index; found a blank"),
    (GOOD + "1 1:1\0 2:1\n", "3:6: expected a blank after the value; found a NUL byte"),
    (GOOD + "1 1:1e999\n", "3:5: expected a number below 1.8e308; found \"1e999\""),
    (GOOD + "1 1:1e39\n", "3:5: expected a number below 3.4e38; found \"1e39\""),
    (GOOD + f"1 {2**64}:1\n", "3:3: expected an index below 2^64; found \"1844674407370955161"),
    (
        GOOD + "1 0:1\n",
        "3:3: expected an index from 1 on (from 0: zero_based=True, --zero-based); found \"0:1\"",
    ),
    (GOOD * 3 + "-1 2:", "7:6: expected a finite number; found the end of the line"),
    (GOOD + "x 1:1\n", "3:1: expected a label; found \"x\""),
    (GOOD + "nan 1:1\n", "3:1: expected a label; found \"nan\""),
    (GOOD + "1,2 1:1\n", "3:2: expected one label (several: --multilabel); found \",2\""),
    (GOOD + "3 1:1\n", "3:1: the label is 3; labels must be -1 and 1, or 0 and 1"),
    (GOOD + "0 1:1\n", "3:1: the label is 0, after labels of -1; labels must be"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_svmlight(tmp_path, text, message):
    data = tmp_path / "rows.svm"
    data.write_text(text)
    assert told(tmp_path, data).startswith(f"{data}:{message}")
    piped = told(tmp_path, "-", "--format", "svmlight", stdin=text.encode())
    assert piped.startswith(f"-:{message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1 |a b:x\n",
            '1:8: expected a finite number; found "x"; a word belongs to the name: color=red',
        ),
        ("1 |a b\n1 a b\n", "2:3: expected an importance weight or '|'; found \"a\""),
        ("1 |a b\n|a b\n", "2:1: the row has no label; leave such rows out with --unlabelled skip"),
        ("1 |a b\nnan |a b\n", "2:1: expected a label or '|'; found \"nan\""),
        ("1 |a b\0\n", "1:7: expected text without NUL bytes; found a NUL byte"),
        ("1 |a b\n1 -1 |a b\n", "2:3: expected an importance weight of at least 0; found"),
        ("1 |a b\n1 |a b:1e999", "2:8: expected a number below 1.8e308"),
        ("1 |a b\n7 |a b\n", "2:1: the label is 7; labels must be -1 and 1, or 0 and 1"),
    ],
)
def test_bad_vw(tmp_path, text, message):
    data = tmp_path / "rows.vw"
    data.write_text(text)
    assert told(tmp_path, data, "--format", "vw").startswith(f"{data}:{message}")


def test_labels_outside_the_classes(tmp_path):
    data = tmp_path / "rows.svm"
    data.write_text("1 1:1\n2 1:1\n5 2:1\n")
    line = told(tmp_path, data, "--multiclass", "--classes", "1,2")
    expected = "the label 5 is not among the classes 1, 2; a third class cannot be added"
    assert line == f"{data}:3:1: {expected}"
    data.write_text("-1 1:1\n2 2:1\n")
    line = told(tmp_path, data, "--loss", "poisson")
    assert line == f"{data}:1:1: the label is -1; loss poisson needs >= 0"


def test_bad_tables(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("a,label\n1,1\n2,0\n3,4,5\n")
    assert told(tmp_path, data) == f"{data}:4: expected 2 cells, found 3"
    data.write_text("a,b\n1,1\n")
    line = told(tmp_path, data)
    assert line.startswith(f"{data}: which column is the label? none is label, y, target or class")
    data.write_text("a,label\n1,7\n2,3\n")
    assert told(tmp_path, data).startswith(f"{data}:2: the label is 7; labels must be")


def test_the_message_names_the_bad_file_of_several(tmp_path):
    for name, text in (("a.svm", GOOD), ("b.svm", GOOD + "1 x\n"), ("c.svm", GOOD)):
        (tmp_path / name).write_text(text)
    assert told(tmp_path, tmp_path / "*.svm").startswith(f"{tmp_path}/b.svm:3:3: expected")


def test_bad_lines_of_other_commands(tmp_path):
    data = tmp_path / "rows.svm"
    data.write_text(GOOD)
    called("train", data, "-m", tmp_path / "good.thresher", "--quiet")
    data.write_text(GOOD + "1 1:x\n")
    before = left(tmp_path)
    done = called("predict", tmp_path / "good.thresher", data, "-o", tmp_path / "out", code=1)
    assert done.stderr.startswith(f"{data}:3:5: expected")
    assert left(tmp_path) == before
    for to in ("out.vw", "out.svm.gz", "out.parquet", "out.csv", "out.cache", "out.vw.zst"):
        line = told(tmp_path, data, tmp_path / to, command="convert")
        assert line.startswith(f"{data}:3:5: expected")
    assert told(tmp_path, data, "--cache", tmp_path / "new.cache").startswith(f"{data}:3:5:")


# ---- damaged and missing files -------------------------------------------------------------------


def test_a_line_of_a_hundred_megabytes(tmp_path):
    """It is one bad line, and takes little memory."""
    data = tmp_path / "rows.svm"
    data.write_text(GOOD)
    peaks = []
    for size in (0, 100 << 20):
        if size:
            with open(data, "r+b") as file:
                file.seek(0, os.SEEK_END)
                file.write(b"1 ")
                file.seek(size, os.SEEK_CUR)  # a sparse file: NUL bytes that take no disk space
                file.write(b"\n" + GOOD.encode())
        model = tmp_path / "model.thresher"
        process = subprocess.Popen(
            [*THRESHER, "train", data, "-m", model, "--quiet", "--on-bad-line", "skip"],
            stderr=subprocess.PIPE,
            text=True,
        )
        line = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss)
    assert line.startswith(f"warning: 1 bad line left out: {data}:3:")
    assert peaks[1] - peaks[0] < 100 << 10  # KiB; 3 x 32 MiB: the longest line, and two blocks
    assert thresher.load(model).history[-1].examples == 4
    model.unlink()
    assert told(tmp_path, data).startswith(f"{data}:3:")


def packers():
    zstandard = pytest.importorskip("zstandard")
    return {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": zstandard.ZstdCompressor().compress,
    }


@pytest.mark.parametrize(
    ("suffix", "name"), [("gz", "gzip"), ("bz2", "bzip2"), ("xz", "xz"), ("zst", "zstandard")]
)
def test_compressed_files_with_a_bad_end(tmp_path, suffix, name):
    packed = packers()[suffix](svmlight(tmp_path / "rows.svm", rows=3000).read_bytes())
    data = tmp_path / f"rows.svm.{suffix}"
    data.write_bytes(packed[: -len(packed) // 3])
    assert told(tmp_path, data).startswith(f"{data}: the {name} data is cut off near byte")
    data.write_bytes(packed + b"what is this")
    line = told(tmp_path, data)
    assert line.startswith(f"{data}: the {name} data is followed by bytes that do not belong to it")
    changed = bytearray(packed)
    changed[len(packed) // 2] ^= 255
    data.write_bytes(changed)
    line = told(tmp_path, data)
    assert line.startswith(f"{data}: the {name} data is damaged") or f"{data}:" in line
    assert line.count(str(data)) == 1


def test_damaged_caches(tmp_path):
    source, cache = svmlight(tmp_path / "rows.svm", rows=3000), tmp_path / "rows.cache"
    called("convert", source, cache, "--quiet")
    whole = cache.read_bytes()
    cache.write_bytes(whole[: len(whole) * 2 // 3])
    line = told(tmp_path, cache)
    assert line.startswith(f"{cache}: the cache is cut short")
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    cache.write_bytes(changed)
    line = told(tmp_path, cache)
    assert line.startswith(f"{cache}: block 0 (bytes ")
    assert "damaged" in line
    cache.write_bytes(whole[: len(whole) * 2 // 3])  # a damaged cache is written again
    called("train", source, "-m", tmp_path / "m.thresher", "--cache", cache, "--quiet")
    assert cache.stat().st_size > len(whole) * 2 // 3


def test_missing_files(tmp_path):
    absent = tmp_path / "absent.svm"
    assert told(tmp_path, absent) == f"{absent}: no such file"
    assert told(tmp_path, tmp_path / "*.vw") == f"no file matches {tmp_path}/*.vw"
    assert told(tmp_path, tmp_path, code=2) == f"{tmp_path} is a folder without files"
    (tmp_path / "rows.txt").touch()
    line = told(tmp_path, tmp_path, code=2)
    assert line.startswith(f"{tmp_path} is a folder; name its files")
    done = called("predict", absent, absent, code=1)
    assert done.stderr == f"{absent}: No such file or directory\n"
    good = tmp_path / "good.svm"
    good.write_text(GOOD)
    assert told(tmp_path, good, "--valid", absent) == f"{absent}: no such file"
    done = called("train", good, "-m", tmp_path / "no" / "m", "--quiet", code=1)
    assert done.stderr == f"{tmp_path}/no/m: there is no folder {tmp_path}/no\n"
    done = called("train", good, "-m", tmp_path, "--quiet", code=1)
    assert done.stderr == f"{tmp_path}: Is a directory\n"


def test_unreadable_files(tmp_path):
    """Reading the memory of a process at address 0 fails, even for root."""
    line = told(tmp_path, "/proc/self/mem", "--format", "svmlight")
    assert line == "/proc/self/mem: Input/output error"
    if os.geteuid() != 0:
        closed = tmp_path / "closed.svm"
        closed.write_text(GOOD)
        closed.chmod(0)
        assert told(tmp_path, closed) == f"{closed}: Permission denied"


@pytest.mark.parametrize("text", ["", "\n\n# nothing\n"])
def test_files_without_rows(tmp_path, text):
    data = tmp_path / "empty.svm"
    data.write_text(text)
    assert told(tmp_path, data) == f"{data}: no rows to learn from"
    for rule in ("stabilized", "coordinate-descent", "mirror-descent"):
        assert told(tmp_path, data, "--rule", rule).startswith(f"{data}: no rows")
    assert told(tmp_path, data, "--multiclass").startswith(f"{data}: ")
    good = tmp_path / "good.svm"
    good.write_text(GOOD)
    assert told(tmp_path, good, "--valid", data) == f"{data}: no rows to compute a loss on"
    called("train", good, "-m", tmp_path / "m.thresher", "--quiet")
    assert called("predict", tmp_path / "m.thresher", data).stdout == ""


def test_files_of_unknown_format(tmp_path):
    data = tmp_path / "notes"
    data.write_text("hello world\nthis is no data\n")
    line = told(tmp_path, data)
    assert line.startswith(f'{data}: its format is not clear from its first line, "hello world"')
    assert "--format" in line
    done = called("inspect", data, code=1)
    assert done.stderr.startswith(f"{data}: not a model, or cut short")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "magic"], "--rule must be one of truncated-gradient, "),
        (["--l1", "much"], "--l1 must be a number >= 0"),
        (["--l1", "-1"], "--l1 must be a number >= 0"),
        (["--rule", "ftrl", "--gravity", "1"], "--gravity is not a parameter of the rule ftrl; it"),
        (["--loss", "magic"], "--loss must be logistic, hinge, "),
        (["--rule", "stabilized", "--loss", "poisson"], "--loss must be logistic, hinge or "),
        (["--store", "magic"], "--store must be one of "),
        (["--format", "magic"], "--format must be one of svmlight, vw, "),
        (["--bits", "50"], "--bits must be a whole number from 1 to 40; got 50"),
        (["--every", "soon"], "--every must be a time such as 60s"),
        (["-q", "abc"], "--interactions must be pairs"),
        (["--on-bad-line", "hope"], "--on-bad-line must be error, skip or quarantine=FILE"),
        (["--threads", "0"], "--threads must be from 1 to 256"),
    ],
)  # fmt: skip
def test_bad_usage(tmp_path, options, message):
    data = tmp_path / "rows.svm"
    data.write_text(GOOD)
    assert told(tmp_path, data, *options, code=2).startswith(f"{message}")


def test_binary_files_are_not_tables(tmp_path):
    data, model = svmlight(tmp_path / "rows.svm"), tmp_path / "m.thresher"
    called("train", data, "-m", model, "--quiet")
    line = told(tmp_path, model)
    assert line.startswith(f"{model}: this is a model or a checkpoint of Thresher, not data")


# ---- labels that are words -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "options", "where", "what"),
    [
        (["a", "", "b"], ["--multiclass"], 3, "the row has no label"),
        (["a", "", "b"], ["--classes", "a,b"], 3, "the row has no label"),
        (["a", "b", "c"], ["--classes", "a,b"], 4, "the label c is not among the classes a, b"),
        (
            ["a", "b"],
            ["--classes", "1,2"],
            2,
            "the label is the word 'a', but the classes are numbers: 1, 2",
        ),
        (["1", "b"], ["--classes", "1,2"], 2, "the label is the word '1', but the classes are"),
        (["1", "2"], ["--classes", "a,b"], 2, "the label 1 is not among the classes a, b"),
        (["", "1"], ["--classes", "a,b"], 2, "the row has no label"),
        (["", "b", "a"], [], 2, "the row has no label"),
        (["", "b"], ["--loss", "squared"], 2, "the row has no label"),
    ],
)
@pytest.mark.parametrize("rule", ["ftrl", "coordinate-descent"])
def test_missing_labels_and_labels_of_mixed_kinds(tmp_path, labels, options, where, what, rule):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    data = tmp_path / "rows.csv"
    data.write_text("x,label\n" + "".join(f"1,{label}\n" for label in labels))
    run = ["--rule", rule, "--quiet", *options]
    done = called("train", data, "-m", tmp_path / "m", *run, code=1)
    assert done.stderr.startswith(f"{data}:{where}: {what}")
    assert done.stderr.count("\n") == 1


def test_classes_that_are_words_and_numbers(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    data = tmp_path / "rows.csv"
    data.write_text("x,label\n" + "a,1\nb,two\n" * 20)
    called("train", data, "-m", tmp_path / "m", "--classes", "1,two", "--passes", "5", "--quiet")
    assert called("predict", tmp_path / "m", data).stdout.split() == ["1", "two"] * 20


def test_multilabel_rows_of_a_table_may_have_no_label(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    data = tmp_path / "rows.csv"
    data.write_text("x,label\n" + "a,p\nb,q\nc,\n" * 40)
    called("train", data, "-m", tmp_path / "m", "--multilabel", "--passes", "9", "--quiet")
    assert called("predict", tmp_path / "m", data).stdout.split("\n")[:3] == ["p", "q", ""]
