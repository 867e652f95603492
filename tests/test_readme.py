"""The README is short, and its shell session prints what it shows."""

import doctest
import re
from pathlib import Path

import pytest

from support.files import called

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SESSION = re.compile(r"^```\n(\$ thresher .*?)^```", re.M | re.S)


def test_its_size() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 100] == []


def test_its_links() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def commands(session: str) -> list[tuple[list[str], str]]:
    """Return each command of a session with the lines it prints; "..." stands for any text."""
    found = []
    for piece in re.split(r"^\$ thresher ", session, flags=re.M)[1:]:
        command, _, shown = piece.partition("\n")
        found.append((command.partition("#")[0].split(), shown))
    return found


def test_its_shell_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (session,) = SESSION.findall(README)
    monkeypatch.chdir(tmp_path)
    checker = doctest.OutputChecker()
    for arguments, shown in commands(session):
        done = called(*arguments)
        printed = done.stderr + done.stdout  # in the order of a terminal
        assert not shown or checker.check_output(shown, printed, doctest.ELLIPSIS), printed
    assert (tmp_path / "discovery.html").exists()
