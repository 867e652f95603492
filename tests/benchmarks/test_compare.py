"""`make bench-compare`: two processes with the same lines and other times."""

import sys

import pytest
from speed import compare, results
from speed.compare import Compared, Version

AREA = """
from itertools import chain, repeat
from speed.line import Line, Skipped, Timed

def ours(*seconds):
    given = chain(seconds, repeat(seconds[-1]))
    return lambda: Timed(next(given))

def lines(full):
    print("this goes to standard error")
    yield Line("same", ours({same}), None, "peer", 1.0)
    yield Line("slower", ours({slower}), None, "peer", 1.0)
    yield Line("noise", ours({noise}), None, "peer", 1.0)
    yield Line("new", {new}, None, "peer", 1.0)
    yield Skipped("without a peer", "no peer")
    {after}
"""
OLD = {
    "same": 1.0, "slower": 1.0, "noise": 1.0, "new": "lambda: [].learn()",
    "after": "raise OSError('old')",
}  # fmt: skip
NEW = {"same": 1.05, "slower": 1.2, "noise": "2.0, 2.0, 1.01", "new": "ours(1)", "after": ""}


def versions(tmp_path):
    """Yield processes of the two versions of a package."""
    for name, facts in (("before", OLD), ("after", NEW)):
        folder = tmp_path / name / "fakes"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "area.py").write_text(AREA.format(**facts))
        yield Version(sys.executable, False, "fakes", str(tmp_path / name))


def test_slower_calls_are_named(tmp_path, capsys):
    both = list(versions(tmp_path))
    found = list(compare.compare(*both, ["area"], [], repeats=2))
    for version in both:
        version.close()
    same, slower, noise, new, skipped, old = found
    assert (same.worse, same.again, round(same.change, 2)) == (False, False, 1.05)
    assert (slower.worse, slower.again, round(slower.change, 2)) == (True, True, 1.2)
    assert (noise.worse, noise.again, round(noise.change, 2)) == (False, True, 1.01)
    assert new.why.startswith("REV cannot run it: AttributeError")
    assert skipped.why == "skipped: no peer"
    assert old.why == "REV cannot run it: OSError: old"
    assert compare.report(found, "v0.1") == 1
    out, err = capsys.readouterr()
    assert err == "error: slower: takes 20% longer than v0.1\n"
    assert out.splitlines()[2].split()[-2:] == ["+20.0%", "WORSE"]
    assert compare.report([same, noise], "v0.1") == 0
    assert compare.report([new], "v0.1") == 1


def test_parts_of_names_select_lines(tmp_path):
    both = list(versions(tmp_path))
    found = list(compare.compare(*both, ["area"], ["SAM"], repeats=1))
    for version in both:
        version.close()
    assert [line.name for line in found] == ["same", "lines of area"]


def test_a_process_that_ends_is_an_error(tmp_path):
    version = Version(sys.executable, False, "fakes", str(tmp_path))
    version.process.kill()
    version.process.wait()
    with pytest.raises(SystemExit, match="has ended"):
        version.ask("next")


def test_an_unknown_commit_is_an_error():
    if not results.git("rev-parse", "HEAD"):
        pytest.skip("this is no git repository")
    with pytest.raises(SystemExit, match="git knows no commit 'no-such-commit'"):
        compare.build("no-such-commit")


def test_change_of_a_line_without_times():
    assert Compared("a", "b", why="no").worse is False
