"""`thresher predict MODEL - --line-buffered`: each line is answered before the next one comes."""

import os
import select
import subprocess

import pytest

from support.files import THRESHER, called, environment, svmlight, thresher, vw


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    called("train", vw(folder / "a.vw"), "-m", folder / "a.thresher", "--quiet")
    return folder / "a.thresher"


def answer(process):
    """Return the next line of output; fail if it does not come."""
    assert select.select([process.stdout], [], [], 60)[0], "no answer came"
    return process.stdout.readline()


@pytest.mark.parametrize("format", [(), ("--format", "vw")])
def test_each_line_of_a_pipe_is_answered_at_once(model, tmp_path, format):
    lines = vw(tmp_path / "b.vw", rows=12, seed=4).read_text().splitlines(keepends=True)
    expected = thresher("predict", model, tmp_path / "b.vw", "--as", "raw", "--quiet").stdout
    expected = expected.splitlines(keepends=True)
    command = [*THRESHER, "predict", str(model), "-", "--line-buffered", "--as", "raw", "--quiet"]
    with subprocess.Popen(
        [*command, *format], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        for line, wanted in zip(lines[:5], expected[:5], strict=True):
            process.stdin.write(line.encode())
            assert answer(process).decode() == wanted
        half = len(lines[5]) // 2
        process.stdin.write(lines[5][:half].encode())
        process.stdin.write((lines[5][half:] + lines[6] + lines[7].rstrip("\n")).encode())
        assert [answer(process).decode() for _ in range(2)] == expected[5:7]
        process.stdin.close()
        assert answer(process).decode() == expected[7]
        assert process.stdout.read() == b""
        assert process.wait(60) == 0


def test_all_of_a_long_input_is_answered(model, tmp_path):
    rows = vw(tmp_path / "c.vw", rows=3000, seed=5)
    expected = thresher("predict", model, rows, "--quiet").stdout
    with open(rows) as file:
        done = thresher("predict", model, "-", "--line-buffered", "--quiet", stdin=file)
    assert done.stdout == expected


def test_a_bad_line_is_an_error_after_the_answers_before_it(model):
    text = "1 |word w1\n|word w2:x\n|word w3\n"
    done = thresher("predict", model, "-", "--line-buffered", input=text, code=1)
    assert done.stdout.count("\n") == 1
    assert done.stderr.startswith("-:2:10: ")
    done = thresher(
        "predict", model, "-", "--line-buffered", "--on-bad-line", "skip", input=text, code=0
    )
    assert done.stdout.count("\n") == 2
    assert "-:2:10: " in done.stderr


def test_lines_of_a_terminal_are_answered_at_once(model):
    main, end = os.openpty()
    command = [*THRESHER, "predict", str(model), "-", "--quiet", "--format", "vw"]
    with subprocess.Popen(
        command, stdin=end, stdout=subprocess.PIPE, env=environment(), start_new_session=True
    ) as process:
        os.close(end)
        os.write(main, b"|word w2 w4 w6\n")
        assert answer(process) in (b"1\n", b"-1\n")
        os.write(main, b"\x04")
        assert process.wait(60) == 0
    os.close(main)


def test_what_cannot_be_answered_line_by_line_is_refused(model, tmp_path):
    done = called("predict", model, svmlight(tmp_path / "d.svm"), "--line-buffered", code=2)
    assert "only standard input is answered line by line" in done.stderr
    done = thresher(
        "predict", model, "-", "--line-buffered", "--format", "csv", input="a,b\n1,2\n", code=2
    )
    assert "cannot be read as they come" in done.stderr
