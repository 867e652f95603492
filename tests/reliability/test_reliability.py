"""A small part of `make soak`: some kills, damaged files, inputs and threads; and its report."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reliability import (
    coverage_of_tests,
    differential,
    hostile,
    kills,
    measured,
    records,
    report,
    restored,
    soak,
    suites,
    threads,
    vw_peer,
)


def test_a_run_ended_by_a_signal_continues() -> None:
    assert kills.kill("ftrl", 2, signal.SIGKILL, seed=0) == (2, [])
    assert kills.kill("ftrl", 1, signal.SIGTERM, seed=0) == (1, [])


def test_damaged_files_are_refused() -> None:
    assert hostile.tried(60, seed=0) == (60, [])


def test_vw_text_equals_the_naive_parser() -> None:
    assert differential.tried(300, seed=0) == (300, [])


def test_threads_do_not_change_results(tmp_path: Path) -> None:
    assert threads.check(tmp_path, threads=3) == 33


def test_records_go_on(tmp_path: Path) -> None:
    """Counts and failures add up; what is done can be forgotten without the counts."""
    assert records.read("kills", tmp_path) is None
    records.add("kills", 6, done={"tried": 6}, folder=tmp_path)
    record = records.add("kills", 4, ["ftrl: other bytes"], done={"tried": 10}, folder=tmp_path)
    assert (record["tried"], record["failed"], record["done"]) == (10, 1, {"tried": 10})
    assert record["failures"] == ["ftrl: other bytes"]
    records.start_again(tmp_path)
    assert records.read("kills", tmp_path) == {**record, "done": {}}


def test_records_of_several_processes_add_up(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from reliability import records\n"
    code += "for _ in range(50): records.add('kills', 1, folder=Path(sys.argv[1]))"
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=records.ROOT / "tests")
        for _ in range(2)
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert (records.read("kills", tmp_path) or {})["tried"] == 100
    with (
        records.locked("fuzz", tmp_path, wait=False),
        pytest.raises(SystemExit, match="runs the step fuzz"),
        records.locked("fuzz", tmp_path, wait=False),
    ):
        pass


def test_the_report_says_what_was_not_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    report.write(tmp_path, page)
    assert report.failed(tmp_path) == 0
    assert page.read_text().count("not run") == len(report.LINES) + 3
    records.add("kills", 1000, folder=tmp_path)
    (tmp_path / "faults.json").write_text(json.dumps({"points": 2345, "wrong": 0}))
    (tmp_path / "coverage.json").write_text(json.dumps({"C++": {"lines": 0.95, "branches": 0.875}}))
    report.write(tmp_path, page)
    assert report.failed(tmp_path) == 0
    text = page.read_text()
    assert f"| 1,000 | 0 | {records.__version__} |" in text
    assert "| 2,345 | 0 |" in text
    assert "| C++ | 95.0 % | 87.5 % |" in text
    assert text.count("not run") == len(report.LINES) - 2 + 2
    records.add("kills", 1, ["ftrl: other bytes\nand more"], folder=tmp_path)
    report.write(tmp_path, page)
    assert report.failed(tmp_path) == 1
    assert "- SIGKILL during `thresher train`: `ftrl: other bytes`\n" in page.read_text()


def test_counts_of_the_page_are_not_lost(tmp_path: Path) -> None:
    """A run without the records of earlier runs, as in a fresh clone, goes on from the page."""
    page, first, second = tmp_path / "page.md", tmp_path / "first", tmp_path / "second"
    all_files = suites.test_files()
    files = [file for file in all_files if file.startswith(("tests/io/", "tests/test_exit"))]
    files += [file for file in all_files if file.startswith("tests/core/")][:1]
    records.add("kills", 1100, ["ftrl: other bytes"], done={"tried": 1100}, folder=first)
    records.add("sanitize", 70, done=dict.fromkeys(files, 2), folder=first)
    found = {"points": 2345, "wrong": 4, "known": 4, "unfinished": 3, "pairs": 8}
    (first / "faults.json").write_text(json.dumps({**found, "since": "0.1.0"}))
    (first / "power.json").write_text(json.dumps({"tried": 12, "failed": 0, "since": "0.1.0"}))
    shares = {"lines": 0.95, "branches": 0.875}
    (first / "coverage.json").write_text(json.dumps({"Python": shares}))
    report.write(first, page)
    assert report.failed(first) == 1
    assert f"{len(files)} of {len(all_files)} files with tests ran" in page.read_text()
    restored.restore(second, page)
    again = tmp_path / "again.md"
    report.write(second, again)
    assert report.failed(second) == 1
    assert again.read_text() == page.read_text()
    assert set((records.read("sanitize", second) or {})["done"]) == set(files)
    assert (records.read("kills", second) or {})["done"] == {"tried": 1100}
    (second / "faults.json").write_text(json.dumps({**found, "points": 100, "earlier": 2341}))
    report.write(second, again)
    assert report.failed(second) == 1
    assert "| 2,437 | 0 |" in again.read_text()
    records.add("kills", 5, folder=second)
    restored.restore(second, page)
    assert (records.read("kills", second) or {})["tried"] == 1105


def test_tests_are_counted(tmp_path: Path) -> None:
    xml = tmp_path / "pytest.xml"
    xml.write_text(
        '<testsuites><testsuite><testcase classname="a" name="b"/><testcase classname="a" name="c">'
        '<failure/></testcase><testcase name="d"><skipped/></testcase></testsuite></testsuites>'
    )
    assert suites.counted(xml) == (2, ["a.c"])


def test_a_soak_goes_on(tmp_path: Path) -> None:
    calls = []

    def tried(count: int, seed: int) -> tuple[int, list[str]]:
        calls.append((count, seed))
        return count, []

    soak.counts("hostile", 10, 4, tried, tmp_path)
    assert calls == [(4, 0), (4, 4), (2, 8)]
    soak.counts("hostile", 10, 4, tried, tmp_path)
    soak.counts("hostile", 11, 4, tried, tmp_path)
    assert calls[3:] == [(1, 10)]
    records.start_again(tmp_path)
    soak.counts("hostile", 1, 4, tried, tmp_path)
    assert calls[4:] == [(1, 11)]


def test_lines_are_summed_as_vw_sums_them() -> None:
    assert vw_peer.ours("1 2 |a x:2 y |c:0.5 z:3") == (1.0, 2.0, 4.5)
    assert vw_peer.ours("1 |a x:y") is None


def test_branches_that_no_test_takes_are_listed() -> None:
    branches = {
        "cpp/a.cpp": {(3, 0): 2, (3, 1): 0, (9, 0): 1},
        "cpp/thresher/io/b.cpp": {(1, 0): 1},
    }
    assert coverage_of_tests.share(branches) == 0.75
    assert coverage_of_tests.share(branches, coverage_of_tests.READERS) == 1.0
    python = {"files": {"src/thresher/a.py": {"missing_branches": [[5, 7]]}}}
    expected = ["cpp/a.cpp:3", "src/thresher/a.py:5 to 7"]
    assert list(coverage_of_tests.untaken(branches, python)) == expected


def test_the_report_counts_faults_that_are_not_all(tmp_path: Path) -> None:
    point = {"operation": "save", "fault": "disk full, once", "n": 3, "wrong": ["exit code 2"]}
    found = {"points": 900, "wrong": 5, "known": 4, "unfinished": 2, "failures": [point]}
    operations = {"save": {"faults": {str(number): {} for number in range(8)}}}
    (tmp_path / "faults.json").write_text(json.dumps({**found, "operations": operations}))
    report.write(tmp_path, tmp_path / "page.md")
    assert report.failed(tmp_path) == 1
    text = (tmp_path / "page.md").read_text()
    assert "| 896 | 1 |" in text
    assert "4 more calls are not counted: there, the library nanobind" in text
    assert "of 8 pairs of an operation and a kind of failure,\n2 are not complete." in text
    assert "`save, disk full, once, call 3: ['exit code 2']`" in text
    records.start_again(tmp_path)
    assert records.read("faults", tmp_path) is None


def test_processes_do_not_count_into_the_same_or_broken_files(tmp_path: Path) -> None:
    assert measured.folder_for_counts(tmp_path) == tmp_path / "0"
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "errors").write_text("libgcov profiling error: ...")
    assert measured.folder_for_counts(tmp_path) == tmp_path / "2"
    code = "import sys; from pathlib import Path; from reliability.measured import *\n"
    code += "print(folder_for_counts(Path(sys.argv[1])).name)"
    for _ in range(2):  # the first has ended when the second begins
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=records.ROOT / "tests", capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == "3\n"


TEMPLATE = """#include <stdexcept>
#include <string>
template <class T>
bool large(T value) {
  std::string word("a word");
  if constexpr (sizeof(T) > 4) return value > 1 && value < 9;
  else return value > 1;
}
int main() { return large(5.0) + large(0.0f) + large(3.0f) == 2 ? 0 : 1; }
"""


@pytest.mark.skipif(shutil.which("gcov") is None, reason="gcov is not installed")
def test_branches_of_templates_count_once_and_exceptions_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpp").mkdir()
    (tmp_path / "cpp" / "a.cpp").write_text(TEMPLATE)
    for command in ("g++ -std=c++20 -O0 --coverage -c cpp/a.cpp", "g++ --coverage a.o"):
        subprocess.run(command.split(), cwd=tmp_path, check=True)
    for number, length in enumerate([None, 0, 100, None]):
        place = tmp_path / "core" / str(number)
        subprocess.run(["./a.out"], cwd=tmp_path, env={"GCOV_PREFIX": str(place)}, check=True)
        [counts] = place.rglob("*.gcda")
        counts.write_bytes(counts.read_bytes()[:length])
    monkeypatch.setattr(coverage_of_tests, "ROOT", tmp_path)
    monkeypatch.setattr(coverage_of_tests, "BUILD", tmp_path)
    lines, branches = coverage_of_tests.core_counts()
    assert lines["cpp/a.cpp"][5] == 2 * 3
    counts = branches["cpp/a.cpp"]
    assert not any(line in (5, 7) for line, _ in counts)  # of a call that may throw; no branch
    assert sorted(counts[6, place] > 0 for place in range(4)) == [False, False, True, True]
    assert {line for line, _ in counts} == {6}
