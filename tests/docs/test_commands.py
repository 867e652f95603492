"""Every command of `thresher` in a code block of the documentation exists, with its options."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from thresher.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = typer.main.get_command(app).commands
SHELLS = ("", "console", "sh", "bash")
WRONG = {"--suffle", "--multiclas"}  # pages show the message


def documents():
    yield ROOT / "README.md"
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if not {"_build", "generated", "gallery"} & set(page.relative_to(ROOT).parts):
            yield page


def blocks(page):
    """Yield the code blocks of a page that may have commands of a shell."""
    language, lines = None, []
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = re.fullmatch(r" *```+(.*)", line)
        if fence is None:
            lines.append(line)
        elif language is None:
            language, lines = fence[1], []
        else:
            if language in SHELLS:
                yield "\n".join(lines)
            language = None


def commands(page):
    """Return the commands of a page as lists of words."""
    found = []
    for block in blocks(page):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r" (?:\||&&|>>?|<) |;", line):
                if match := re.match(r" *(?:\$ )?(?:nohup )?(thresher [a-z]+(?: .*|$))", part):
                    found.append(shlex.split(match[1], comments=True))
    return found


PAGES = {page.relative_to(ROOT).as_posix(): commands(page) for page in documents()}


@pytest.mark.parametrize("page", [page for page, found in PAGES.items() if found])
def test_commands_and_options_exist(page):
    for words in PAGES[page]:
        assert words[1] in COMMANDS, words
        known = {o for p in COMMANDS[words[1]].params for o in (*p.opts, *p.secondary_opts)}
        known |= {"--help", "--help-all"}
        given = {re.sub("=.*", "", w) for w in words[2:] if re.match(r"--?[a-z]", w)}
        assert given - WRONG <= known, (words, given - known)


def test_many_commands_are_checked():
    assert sum(map(len, PAGES.values())) > 70
