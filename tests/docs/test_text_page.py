"""The commands and scripts of docs/text.md run on the messages that the page names."""

import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from support.files import called

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "text.md").read_text()
TOPICS = ("sci.space", "rec.autos")


@pytest.fixture
def messages(data_dir, tmp_path, monkeypatch):
    """Change to a folder with the messages of two groups."""
    with tarfile.open(data_dir / "20news-bydate.tar.xz") as archive:
        chosen = [one for one in archive if Path(one.name).parent.name in TOPICS]
        archive.extractall(tmp_path, chosen, filter="data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.data
def test_the_page_says_what_its_commands_give(messages):
    in_python, script = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    found = subprocess.run(
        [sys.executable, "-c", in_python], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    stated = re.findall(r"# (.*)$", in_python, re.MULTILINE)
    assert [f"{float(one):.3f}" for one in found[:2]] == stated[:2]
    assert re.findall(r"\w+", found[2]) == stated[2].split(", ")

    (messages / "to_csv.py").write_text(script)
    shell = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ")
    printed = {}
    for line in shell.splitlines():
        command, *arguments = shlex.split(line)
        if command == "python":
            file = arguments[arguments.index(">") + 1]
            done = subprocess.run(
                [sys.executable, *arguments[:-2]], capture_output=True, check=True
            )
            (messages / file).write_bytes(done.stdout)
        else:
            assert command == "thresher"
            printed[arguments[0]] = called(*arguments).stdout
    accuracy = re.search(r"^accuracy +(\S+)", printed["evaluate"], re.MULTILINE)
    stated = re.search(r"The accuracy is (0\.\d+)", PAGE)
    assert abs(float(accuracy[1]) - float(stated[1])) < 0.001
    words = re.search(r"finds (.*?) and `(\w+)`", PAGE)
    selected = re.findall(r"^text\^(\w+)", printed["discover"], re.MULTILINE)
    assert selected == [*re.findall(r"\w+", words[1]), words[2]]
    assert "text^car " in printed["inspect"]
