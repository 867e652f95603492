"""Lines of progress: columns never touch, and lines fit in the terminal."""

from __future__ import annotations

import io

import pytest

from thresher.progress.columns import PASSES, ROWS, STAGES, heading_of, line_of, narrowed
from thresher.progress.display import Display, LiveDisplay, display_for_stderr
from thresher.progress.texts import bar, loss_text
from thresher.progress.verbose import StatusLine

FACTS = {
    "event": "progress", "examples": 1234567890, "pass": 12345, "loss": 931980.5437,
    "mean_loss": 1.0, "nonzeros": 987654321, "rows_per_second": 123456789, "done": 0.5,
    "left": 360000.0, "output": 18, "outputs": 18, "stage": 3,
}  # fmt: skip
LOSSES = (0.0, 0.25, 10.9, 9999.9999, 931980.5437, 3e300, -3e300, 1e-9, float("inf"), float("nan"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [ROWS, PASSES, STAGES])
@pytest.mark.parametrize("loss", LOSSES)
def test_columns_never_touch(columns, loss):
    """The loss 931980.5437 in pass 1 was once shown as 11931980.5437."""
    facts = {**FACTS, "loss": loss}
    found = line_of(columns, facts).split()
    texts = [word for column in columns for word in column.text(facts).split()]
    assert found == texts
    assert len(heading_of(columns).split()) == len(columns)


def test_the_line_of_the_issue():
    line = line_of(ROWS, {**FACTS, "examples": 128, "pass": 1, "nonzeros": 40, "left": 1.0})
    assert line.split()[:4] == ["128", "1", "9.320e+05", "40"]


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_fit_in_their_column(loss):
    assert len(loss_text(loss)) <= 10
    if loss == loss and abs(loss) < float("inf"):
        assert float(loss_text(loss)) == pytest.approx(loss, rel=1e-2, abs=1e-12)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("kind", ["rows", "passes", "stages"])
def test_live_lines_fit_in_the_terminal(monkeypatch, width, kind):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    facts = {**FACTS, "examples": 1_000_000, "nonzeros": 10_000, "loss": 0.5, "left": 90.0}
    if kind != "stages":
        del facts["stage"]
    if kind == "passes":
        del facts["examples"]
    display = display_for_stderr()
    assert isinstance(display, LiveDisplay)
    display.show(facts)
    display.show({**facts, "done": 1.0})
    display.text("below")
    shown = screen.getvalue()
    for line in shown.replace("\x1b[K", "").replace("\r", "\n").splitlines():
        assert len(line) < width
    assert shown.endswith("\x1b[K\nbelow\n")
    if width >= 40:
        assert "0.5000" in shown
        assert "100%" in shown
        assert "1:30" in shown
    if width >= 80:
        assert "[===" in shown


def test_a_file_gets_lines_without_control_characters(capsys):
    display = display_for_stderr()
    assert type(display) is Display
    facts = {name: value for name, value in FACTS.items() if name != "stage"}
    display.show(facts)
    display.show(facts)
    display.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert not any(character in line for line in lines for character in "\r\x1b[")


def test_narrowed_keeps_the_most_useful_columns():
    assert [column.heading for column in narrowed(ROWS, 39)] == ["loss", "nonzeros", "done", "left"]
    assert narrowed(ROWS, 80) == ROWS
    assert [column.heading for column in narrowed(ROWS, 1)] == ["loss", "done", "left"]


def test_bars():
    assert [bar(share, 10) for share in (-1.0, 0.0, 0.99, 1.0, 2.0)] == [
        "[        ]", "[        ]", "[======= ]", "[========]", "[========]",
    ]  # fmt: skip


def test_a_status_line_is_erased(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "40")
    with StatusLine(1) as line:
        line.show("pair 1 of 50: a long text that does not fit in the line", 0.5)
        line.show("too early", 0.6)
    shown = screen.getvalue()
    assert shown.endswith("\r\x1b[K")
    assert "too early" not in shown
    assert len(shown.removeprefix("\r").partition("\x1b")[0]) == 39
