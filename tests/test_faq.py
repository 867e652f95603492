"""The commands of docs/faq.md print what the page says."""

import re
import shlex
from pathlib import Path

import pytest

from support.files import called

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "faq.md").read_text()


def sessions():
    """Yield each command of the page with the lines that it should print."""
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = part.partition("\n")
            yield pytest.param(command, printed.strip(), id=command[:60])


def test_questions_are_many_and_different():
    questions = re.findall(r"^### (.*)$", PAGE, re.M)
    assert len(questions) == len(set(questions)) >= 20


@pytest.mark.parametrize(("command", "printed"), list(sessions()))
def test_the_commands_of_the_page(command, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "classes.svm").write_text("1 1:1\n2 2:1\n3 3:1\n" * 20)
    done = called(*shlex.split(command)[1:], code=None)
    assert (done.returncode == 0) == (not printed)
    pattern = ".*".join(map(re.escape, " ".join(printed.split()).split("...")))
    assert not printed or re.fullmatch(pattern, " ".join(done.stderr.split()))
