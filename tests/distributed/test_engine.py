"""Pieces in one process: the result is bit-identical for any hosts, and after any loss."""

from __future__ import annotations

import errno
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from support.toys import Send, Toy, ToyPart, bits
from thresher.distributed.engine import executor as executors
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder, CommittedStage, locked_folder
from thresher.distributed.engine.loop import ContinueLater, run_stages
from thresher.distributed.engine.pieces import MessagesLost, StepResult
from thresher.errors import ClusterError, DataError, DivergenceError, ModelFileError, ParameterError


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch):
    """Do not wait for the disk: hundreds of small files are written here."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def run(mode, folder=None, hosts=1, every=1, committed=None, watch=None, executor=None):
    executor = executor or InProcessExecutor(mode, folder, hosts)
    return run_stages(mode, executor, folder, every, committed, watch)


MODES = [Toy(), Toy(keep=True), Toy(combine=True), Toy(combine=True, keep=True), Toy(1, 1)]


@pytest.mark.parametrize("mode", MODES, ids=["plain", "keep", "combine", "both", "one piece"])
def test_any_number_of_hosts_gives_the_same_bits(mode, tmp_path):
    whole = bits(run(mode))
    for hosts in (2, 3, 8):
        assert bits(run(mode, hosts=hosts)) == whole
        assert bits(run(mode, CheckpointFolder(str(tmp_path)), hosts)) == whole


def test_the_toy_depends_on_the_order_of_sums():
    swapped = InProcessExecutor(Toy(), None)
    swapped._packets = lambda kind, numbers, sent: {
        n: [[(-i, a) for i, a in p] for p in found]
        for n, found in InProcessExecutor._packets(swapped, kind, numbers, sent).items()
    }
    assert bits(run(Toy(), executor=swapped)) != bits(run(Toy()))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_a_stopped_run_is_resumed_to_the_same_bits(tmp_path, keep, every, stop):
    mode, folder = Toy(keep=keep), CheckpointFolder(str(tmp_path))
    with pytest.raises(ContinueLater):
        run(mode, folder, 2, every, watch=lambda report: report.stage == stop)
    reports = []
    again = run(mode, folder, 3, every, folder.committed(), watch=lambda r: reports.append(r.stage))
    assert bits(again) == bits(run(mode))
    assert reports == list(range(stop + 1, 5))
    assert sorted(os.listdir(tmp_path)) == ["committed.json", "stage-00000004"]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("every", [1, 2, 3, 9])
@pytest.mark.parametrize("when", [1, 2, 3])
def test_a_host_that_loses_its_pieces_makes_only_these_again(tmp_path, keep, every, when):
    mode, folder = Toy(keep=keep), CheckpointFolder(str(tmp_path))
    executor, remade = InProcessExecutor(mode, folder, 2), {}

    def watch(report):
        remade[report.stage] = set(report.remade)
        if report.stage == when:
            executor.hosts[1]._held.clear()

    assert bits(run(mode, folder, every=every, watch=watch, executor=executor)) == bits(run(mode))
    own = {("part", 1), ("part", 3), ("range", 1)}
    assert remade == {stage: own if stage == when + 1 else set() for stage in range(1, 5)}


def test_without_a_folder_a_lost_host_starts_all_again():
    executor, stages = InProcessExecutor(Toy(), None, 2), []
    notes = []
    executor.note = notes.append

    def watch(report):
        stages.append(report.stage)
        if stages == [1, 2]:
            executor.hosts[0]._held.clear()

    assert bits(run(Toy(), watch=watch, executor=executor)) == bits(run(Toy()))
    assert stages == [1, 2, 1, 2, 3, 4]
    assert notes == ["arrays sent by workers were lost; training goes back to the end of stage 0"]


class Losing(InProcessExecutor):
    """Loses arrays that were sent, at certain calls."""

    def __init__(self, *args, calls):
        super().__init__(*args)
        self.calls, self.count, self.note = calls, 0, lambda text: None

    def _call(self, method, work):
        self.count += 1
        if self.count in self.calls:
            raise MessagesLost
        return super()._call(method, work)


@pytest.mark.parametrize("keep", [False, True])
def test_lost_arrays_take_all_pieces_back_to_the_checkpoint(tmp_path, keep):
    mode = Toy(keep=keep)
    whole = bits(run(mode))
    for every in (1, 2):
        for call in range(1, 24):
            folder = CheckpointFolder(str(tmp_path / f"{every}-{call}"))
            executor = Losing(mode, folder, 2, calls={call, call + 3})
            assert bits(run(mode, folder, every=every, executor=executor)) == whole


def test_repeated_losses_end_with_an_error_that_names_the_checkpoint(tmp_path):
    folder = CheckpointFolder(str(tmp_path))
    executor = Losing(Toy(), folder, calls=range(9, 1000))
    with pytest.raises(ClusterError, match="lost 10 times before stage 2 was done"):
        run(Toy(), folder, executor=executor)
    assert folder.committed().stage == 1
    assert bits(run(Toy(), folder, committed=folder.committed())) == bits(run(Toy()))


def test_reports_have_the_cost_of_a_stage(tmp_path):
    reports = []
    run(Toy(), CheckpointFolder(str(tmp_path)), 2, every=2, watch=lambda r: reports.append(r))
    assert [r.checkpoint for r in reports] == [False, True, False, True]
    # Parts send an array to each range; ranges send one, which both hosts get.
    assert [r.bytes for r in reports] == [(5 * 3 + 3 * 2) * 7 * 8] * 4
    assert {r.rows for r in reports} == {50}
    assert all(r.slowest in (0, 1) and r.wait >= 0 and r.trouble is None for r in reports)
    combined = []
    run(Toy(combine=True), hosts=2, watch=combined.append)
    assert combined[0].bytes == (2 * 3 + 3 * 2) * 7 * 8


def test_empty_arrays_survive_a_checkpoint(tmp_path):
    folder = CheckpointFolder(str(tmp_path))
    mode = Toy(keep=True, stages=2, width=0)
    whole = bits(run(mode))
    with pytest.raises(ContinueLater):
        run(mode, folder, watch=lambda report: True)
    assert bits(run(mode, folder, committed=folder.committed())) == whole


def test_an_empty_bundle_keeps_its_place(tmp_path):
    from thresher.distributed.engine.host import Host

    folder = CheckpointFolder(str(tmp_path))
    host = Host(Toy(), folder)
    host.make("part", [0], None, 0)
    held = host._held["part", 0]
    held.piece.step = lambda message, received: StepResult(None, [{}, {"x": np.ones(2)}, {}])
    host.step("part", [0], 1, Send(1), {0: []})
    host.write("part", [0], 1, 1, True)
    again = Host(Toy(), folder)
    again.make("part", [0], 1, 1)
    assert [list(p[0][1]) for p in again.sent("part", [0], 1)] == [[], ["x"], []]


def test_received_arrays_are_read_only(monkeypatch):
    def step(self, message, received):
        if received:
            received[0]["x"][:] = 0
        return real(self, message, received)

    real = ToyPart.step
    monkeypatch.setattr(ToyPart, "step", step)
    with pytest.raises(ValueError, match="read-only"):
        run(Toy())


def test_a_wrong_number_of_bundles_is_refused(monkeypatch):
    monkeypatch.setattr(ToyPart, "step", lambda *_: StepResult(None, [{}, {}]))
    with pytest.raises(ValueError, match="a part sends 3 bundles or none, not 2"):
        run(Toy())


# ---- checkpoints ---------------------------------------------------------------------------------


def checkpoint(tmp_path, stages=2):
    folder = CheckpointFolder(str(tmp_path))
    with pytest.raises(ContinueLater):
        run(Toy(), folder, watch=lambda report: report.stage == stages)
    return folder


def test_files_of_a_killed_run_are_removed(tmp_path):
    folder = checkpoint(tmp_path)
    (tmp_path / "stage-00000003").mkdir()
    (tmp_path / "stage-00000003" / "part-00000").write_bytes(b"half")
    left = [
        "stage-00000002/part-00000.0123456789abcdef.part",
        "committed.json.0123456789abcdef.part",
    ]
    for name in left:
        (tmp_path / name).write_bytes(b"half")
    folder.remove_leftovers()
    assert sorted(os.listdir(tmp_path)) == ["committed.json", "stage-00000002"]
    assert not list(tmp_path.rglob("*.part"))
    assert bits(run(Toy(), folder, committed=folder.committed())) == bits(run(Toy()))


def test_a_new_run_does_not_use_files_of_another_one(tmp_path):
    folder = checkpoint(tmp_path)
    other = Toy(parts=4)
    executor = Losing(other, folder, calls={4})  # before its first checkpoint
    assert bits(run(other, folder, executor=executor)) == bits(run(other))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"{}", b'"x"', b"\xff\xfe"]
    + [
        json.dumps(
            {"stage": 1, "steps": {"part": 1, "range": 1}, "mail": [], "lead": {}, "shown": []}
            | change
        ).encode()
        for change in (
            {"stage": "1"},
            {"stage": -1},
            {"stage": True},
            {"steps": {"part": 1}},
            {"steps": {"part": 1, "range": 1.5}},
            {"steps": []},
            {"mail": ["x"]},
            {"mail": None},
            {"lead": []},
            {"shown": {}},
            {"more": 1},
        )
    ],
)
def test_a_damaged_checkpoint_is_named(tmp_path, content):
    (tmp_path / "committed.json").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"committed\.json: cannot be read, or is damaged"):
        CheckpointFolder(str(tmp_path)).committed()


def test_a_damaged_state_is_named(tmp_path):
    folder = checkpoint(tmp_path)
    file = tmp_path / "stage-00000002" / "range-00001"
    for content in (file.read_bytes()[:-3], b"", None):
        file.unlink() if content is None else file.write_bytes(content)
        with pytest.raises(ModelFileError, match="range-00001: cannot be read"):
            run(Toy(), folder, committed=folder.committed())


def test_with_a_full_disk_the_last_checkpoint_stays_and_the_run_continues(tmp_path, monkeypatch):
    folder, reports, notes = CheckpointFolder(str(tmp_path)), [], []
    real = CheckpointFolder.write

    def write(self, kind, number, stage, state):
        if stage in (2, 3) and (kind, number) == ("part", 3):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "part-00003")
        return real(self, kind, number, stage, state)

    def watch(report):
        reports.append((report.checkpoint, report.trouble is not None, folder.committed().stage))
        assert os.listdir(tmp_path / f"stage-{reports[-1][2]:08}")
        assert len(os.listdir(tmp_path)) == 2
        if report.stage == 3:
            executor.hosts[0]._held.clear()  # steps since the last checkpoint are kept

    monkeypatch.setattr(CheckpointFolder, "write", write)
    executor = InProcessExecutor(Toy(), folder, 2)
    executor.note = notes.append
    assert bits(run(Toy(), folder, watch=watch, executor=executor)) == bits(run(Toy()))
    assert reports == [(True, False, 1), (False, True, 1), (False, True, 1), (True, False, 4)]
    assert len(notes) == 2
    assert "stage 2 could be written: [Errno 28] No space left" in notes[0]


def test_a_stopped_run_that_cannot_write_its_checkpoint_raises_the_error(tmp_path, monkeypatch):
    folder = checkpoint(tmp_path, 1)

    def write(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(CheckpointFolder, "write", write)
    executor = InProcessExecutor(Toy(), folder)
    executor.note = lambda text: None
    with pytest.raises(OSError, match="No space left"):
        run(
            Toy(),
            folder,
            executor=executor,
            committed=folder.committed(),
            watch=lambda report: True,
        )
    assert folder.committed().stage == 1


def test_a_folder_does_not_depend_on_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = CheckpointFolder("here")
    monkeypatch.chdir("/")
    folder.write("part", 0, 1, {"x": np.ones(1)})
    folder.commit(CommittedStage(1, {"part": 1, "range": 0}, [], {}, []))
    assert (tmp_path / "here" / "stage-00000001" / "part-00000").exists()


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [DataError, DivergenceError, ModelFileError, ParameterError])
def test_errors_of_pieces_are_raised_unchanged_and_can_be_pickled(error):
    with pytest.raises(error, match="part 2: a row is bad") as caught:
        run(Toy(trouble={"2:3": error.__name__}))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is error
    assert str(again) == str(caught.value)


def test_the_size_of_kept_steps_is_limited(tmp_path, monkeypatch):
    """Without kept steps, all pieces go back when one is lost; the result has the same bits."""
    monkeypatch.setattr(executors, "_MAX_KEPT", 0)
    mode = Toy(stages=6)
    executor = InProcessExecutor(mode, CheckpointFolder(tmp_path), 2)
    kept, notes = [], []
    executor.note = notes.append

    def watch(report):
        kept.append(sum(len(since) for since in executor._since.values()))
        if report.stage == 5 and not notes:
            executor.hosts[1]._held.clear()

    again = bits(run(mode, CheckpointFolder(tmp_path), executor=executor, every=4, watch=watch))
    assert again == bits(run(mode))
    assert max(kept) == 0
    assert notes == ["arrays sent by workers were lost; training goes back to the end of stage 4"]


def test_only_folders_of_stages_are_removed(tmp_path):
    """Other folders stay."""
    (tmp_path / "stage-plays").mkdir()
    (tmp_path / "stage-plays" / "hamlet").touch()
    run(Toy(), CheckpointFolder(tmp_path))
    assert (tmp_path / "stage-plays" / "hamlet").exists()
    assert len(list(tmp_path.glob("stage-0*"))) == 1


def test_only_one_run_at_a_time_uses_a_folder(tmp_path):
    folder = str(tmp_path / "a" / "checkpoint")
    with locked_folder(folder):
        with (
            pytest.raises(ModelFileError, match="another run is using this folder"),
            locked_folder(folder),
        ):
            raise AssertionError
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)  # nothing was written
    with locked_folder(folder):
        Path(folder, "manifest.json").touch()
    with locked_folder(folder):  # and again
        assert Path(folder, "manifest.json").exists()
