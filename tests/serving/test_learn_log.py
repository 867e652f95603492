"""The log of `thresher serve --learn`: its whole groups are read, and damage is found."""

import os

import pytest

from thresher.serving.learn_log import LearnLog, read_log


@pytest.fixture
def log(tmp_path):
    path = str(tmp_path / "log-00000000.jsonl")
    LearnLog.create(path, {"rows": 0})
    log = LearnLog(path, os.path.getsize(path))
    for i in range(5):
        log.append([{"rows": [{"a": i}], "labels": [1]}])
    log.close()
    return path


def test_a_log_that_was_cut_at_any_byte_has_its_whole_groups(log):
    with open(log, "rb") as file:
        whole = file.read()
    begin = whole.index(b"\n") + 1
    for end in range(begin, len(whole) + 1):
        with open(log, "wb") as file:
            file.write(whole[:end])
        found = [group[0]["rows"][0]["a"] for group, _ in read_log(log)[1]]
        assert found == list(range(whole[begin:end].count(b"\n")))


def test_a_changed_byte_inside_a_log_is_an_error(log):
    with open(log, "rb") as file:
        whole = file.read()
    begin = whole.index(b"\n") + 1
    last = whole.rindex(b"\n", 0, -1)
    for place in range(begin, last, 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        with open(log, "wb") as file:
            file.write(changed)
        with pytest.raises(ValueError, match="is damaged, and more lines follow"):
            list(read_log(log)[1])
