"""`thresher completion` and `thresher man`."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from support.commands import COMMANDS, context
from support.files import called
from thresher.cli.render.help import options_of
from thresher.cli.render.manual import EXIT_CODES
from thresher.rules import RULES

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """The script of bash, in a folder with one file."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "rows.svm").write_text("1 1:1\n")
    (folder / "thresher.bash").write_text(called("completion", "bash").stdout)
    return folder / "thresher.bash"


def completed(script, *words):
    """Return what bash proposes for the last word."""
    quoted = " ".join(f"'{word}'" for word in ("thresher", *words))
    code = f"""
    source {script}
    COMP_WORDS=({quoted}); COMP_CWORD={len(words)}
    _thresher
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", code],
        capture_output=True,
        text=True,
        cwd=script.parent,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split()


# ---- completion ----------------------------------------------------------------------------------


@bash
def test_bash_completes_commands_options_and_words(script):
    assert completed(script, "tr") == ["train"]
    assert {"train", "tune", "predict"} <= set(completed(script, ""))
    assert completed(script, "train", "--passe") == ["--passes"]
    assert completed(script, "train", "--rule", "ft") == ["ftrl"]
    assert set(completed(script, "train", "--rule", "")) == {*RULES, "auto"}
    assert "hard-threshold" not in completed(script, "tune", "--rule", "")
    assert completed(script, "train", "--loss", "log") == ["logistic", "log_loss"]
    assert "parquet" in completed(script, "convert", "--format", "")
    assert completed(script, "train", "--schedule", "sq") == ["sqrt"]
    assert completed(script, "train", "ro") == ["rows.svm"]
    assert completed(script, "train", "--valid", "ro") == ["rows.svm"]
    assert completed(script, "train", "--passes", "") == []
    assert completed(script, "completion", "z") == ["zsh"]
    assert completed(script, "man", "disc") == ["discover"]
    assert "--strict" in completed(script, "predict", "--")


@bash
def test_a_tab_in_a_real_bash(script):
    """Types `thresher tr`, then the tabulator, into an interactive bash."""
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover
        os.environ |= {"PS1": "$ ", "TERM": "dumb"}
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    try:
        os.write(terminal, f"source {script}\n".encode())
        shown, ends = "", time.monotonic() + 20
        typed = False
        while time.monotonic() < ends and "thresher train " not in shown:
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096).decode()
            elif not typed and shown.rstrip().endswith("$"):
                os.write(terminal, b"thresher tr\t")
                typed = True
        assert "thresher train " in shown
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_have_all_options(shell):
    text = called("completion", shell).stdout
    for command in COMMANDS:
        assert command in text
        for option in options_of(*context(command)):
            if not option.argument:
                name = option.name if shell != "fish" else f"-l {option.name[2:]}"
                assert name in text
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=text, text=True, check=True)


def test_an_unknown_shell():
    done = called("completion", "tcsh", code=2)
    assert done.stderr == "SHELL must be one of bash, zsh, fish; got 'tcsh'\n"


# ---- manual pages --------------------------------------------------------------------------------


def test_pages_have_the_parts_of_a_manual_page(tmp_path):
    done = called("man", "--write", tmp_path)
    assert done.stdout == f"{len(COMMANDS) + 1} pages -> {tmp_path}/man1\n"
    for command in COMMANDS:
        text = (tmp_path / "man1" / f"thresher-{command}.1").read_text()
        assert text == called("man", command).stdout
        assert text.startswith(".TH THRESHER")
        parts = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
        assert parts == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"]
        for option in options_of(*context(command)):
            assert option.name.replace("-", r"\-") in text
        assert not re.search(r"^'", text, re.MULTILINE)
    text = (tmp_path / "man1" / "thresher.1").read_text()
    assert all(rf"\fBthresher\-{command}\fR(1)" in text for command in COMMANDS)
    assert all(rf"\fB{code}\fR" in text for code in EXIT_CODES)


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_groff_has_no_complaint(tmp_path):
    called("man", "--write", tmp_path)
    for page in sorted((tmp_path / "man1").iterdir()):
        command = ["groff", "-Tutf8", "-man", "-ww", "-rLL=80n", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert not done.stderr, page
        assert "EXIT" in re.sub(r".\x08", "", done.stdout)


def test_an_unknown_page():
    assert called("man", "tran", code=2).stderr.startswith("there is no command tran; there are")
