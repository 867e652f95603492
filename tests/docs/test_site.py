"""The pages of the site: each is in one table of contents, and its shell sessions run."""

import doctest
import re
import runpy
from pathlib import Path

import pytest

from support.files import called

DOCS = Path(__file__).resolve().parents[2] / "docs"
GENERATED = ("_build", "gallery", "templates")
LISTS = re.compile(r"(?:```\{toctree\}\n(.*?)```|\.\. toctree::\n(.*?)(?=\n\S|\Z))", re.S)


def pages():
    """Return the names of all pages, without suffix."""
    found = [path for path in DOCS.rglob("*") if path.suffix in (".md", ".rst", ".ipynb")]
    names = [path.relative_to(DOCS).with_suffix("") for path in found]
    return {n.as_posix() for n in names if not {*GENERATED, "generated"} & set(n.parts)}


def entries(page):
    """Yield the pages that the tables of contents of a page name."""
    file = next(p for s in (".md", ".rst", ".ipynb") if (p := DOCS / f"{page}{s}").exists())
    for match in LISTS.findall(file.read_text(encoding="utf-8")):
        for line in "".join(match).splitlines():
            name = line.strip()
            if not name or name.startswith(":"):
                continue
            place = (file.parent / name).resolve().relative_to(DOCS).as_posix()
            if "*" in place:
                yield from (p for p in pages() if Path(p).match(place))
            else:
                yield place


def test_every_page_is_in_one_table_of_contents():
    listed = [entry for page in pages() for entry in entries(page)]
    assert len(listed) > 80
    known = pages() | {"gallery/index"}
    assert set(listed) <= known
    assert sorted(known - set(listed)) == ["index"]
    assert len(listed) == len(set(listed))


def test_no_page_has_the_name_of_a_page_of_sphinx():
    assert pages().isdisjoint({"search", "genindex", "py-modindex"})


def test_every_command_has_a_page():
    made = runpy.run_path(str(DOCS / "extensions" / "command_pages.py"))["pages"]()
    index = (DOCS / "commands" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `thresher (\w+)` \| .+ \|$", index, re.M) == list(made)
    for name, text in made.items():
        shown = called(name, "--help-all").stdout
        options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", shown.partition("\n\n")[2]))
        assert options
        summary = re.search(rf"^\| `thresher {name}` \| (.*) \|$", index, re.M)[1]
        assert summary in " ".join(shown.split())
        assert text.startswith(f"# thresher {name}\n")
        assert [option for option in options if option not in text.replace("\\", "")] == []


def sessions():
    for page in ("index.md", "quickstart.md"):
        for text in re.findall(r"```console\n(.*?)```", (DOCS / page).read_text(), re.S):
            yield pytest.param(text, id=page)


@pytest.mark.parametrize("session", list(sessions()))
def test_shell_sessions(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checker = doctest.OutputChecker()
    commands = re.split(r"^\$ thresher ", session, flags=re.M)[1:]
    assert len(commands) >= 3
    for piece in commands:
        command, _, shown = piece.partition("\n")
        done = called(*command.partition("#")[0].split())
        printed = done.stderr + done.stdout
        assert not shown or checker.check_output(shown, printed, doctest.ELLIPSIS), printed
