"""Who may read and write the files and folders that we write."""

import os
import stat
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pytest

from support.files import called, svmlight
from thresher import FTRLClassifier, atomic, datasets
from thresher.atomic import write_whole

OTHER = 12345  # the number of another user, and of a group
ROOT = os.getuid() == 0


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture(params=[True, False], ids=["unnamed", "named"])
def unnamed(request, monkeypatch):
    """The temporary file has no name, or, as on file systems without such files, has one."""
    if not request.param:
        monkeypatch.delattr(os, "O_TMPFILE")


@pytest.fixture
def umask():
    """Set a umask for the test."""
    before = os.umask(0)
    yield os.umask
    os.umask(before)


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("allowed", [0o600, 0o640, 0o664, 0o444, 0o755])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, umask, allowed):
    umask(0o022)
    path = tmp_path / "a"
    path.write_bytes(b"before")
    path.chmod(allowed)
    write_whole(path, b"after")
    assert path.read_bytes() == b"after"
    assert mode(path) == allowed


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_new_files_obey_the_umask(tmp_path, umask, mask):
    umask(mask)
    write_whole(tmp_path / "a", b"new")
    assert mode(tmp_path / "a") == 0o666 & ~mask


def test_a_secret_file_is_never_readable_by_others(tmp_path, umask, monkeypatch):
    """Neither is the temporary file beside it, if it has a name; not even when it is opened."""
    umask(0o022)
    opened, keep = [], atomic.keep_access

    def kept(handle, path):
        opened.append(stat.S_IMODE(os.fstat(handle).st_mode))
        keep(handle, path)

    monkeypatch.setattr(atomic, "keep_access", kept)
    monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "a"
    path.write_bytes(b"before")
    path.chmod(0o600)
    with atomic.written_whole(path) as file:
        file.write(b"after")
        assert [mode(one) for one in tmp_path.iterdir()] == [0o600, 0o600]
    assert opened == [0o600]


@pytest.mark.usefixtures("unnamed")
@pytest.mark.skipif(not ROOT, reason="only the superuser may give files to other users")
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"before")
    os.chown(path, OTHER, OTHER + 1)
    path.chmod(0o4640)
    write_whole(path, b"after")
    found = os.stat(path)
    assert (found.st_uid, found.st_gid) == (OTHER, OTHER + 1)
    assert mode(path) == 0o4640


@pytest.mark.skipif(not ROOT, reason="only the superuser may become another user")
def test_a_group_that_cannot_be_kept_gets_no_rights():
    """A user who may write to the folder, but is not in the group, replaces a file of a group."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path = Path(folder, "a")
        path.write_bytes(b"before")
        path.chmod(0o4664)
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(OTHER)
                os.setuid(OTHER)
                write_whole(path, b"after")
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert path.read_bytes() == b"after"
        assert os.stat(path).st_gid == OTHER
        assert mode(path) == 0o644


def test_commands_keep_the_mode_of_their_outputs(tmp_path, umask):
    umask(0o022)
    rows = svmlight(tmp_path / "rows.svm")
    model, out, cache = (tmp_path / name for name in ("m.thresher", "out", "rows.cache"))
    for number, path in enumerate((model, out, cache)):
        if number < 2:
            path.write_bytes(b"")
            path.chmod(0o600)
    called("train", rows, "-m", model, "--cache", cache, "--quiet")
    called("predict", model, rows, "-o", out)
    assert [mode(path) for path in (model, out, cache)] == [0o600, 0o600, 0o644]


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_cache_that_is_made_again_keeps_mode_and_owner(tmp_path, umask, shuffled):
    """It is made again because the rows have changed."""
    umask(0o022)
    rows, cache = svmlight(tmp_path / "rows.svm"), tmp_path / "rows.cache"
    words = ("train", rows, "-m", tmp_path / "m", "--cache", cache, "--quiet")
    words += ("--shuffle",) * shuffled
    called(*words)
    assert mode(cache) == 0o644
    before = os.stat(cache)
    cache.chmod(0o640)
    if ROOT:
        os.chown(cache, OTHER, OTHER + 1)
    svmlight(rows, seed=1)
    called(*words)
    found = os.stat(cache)
    assert found.st_ino != before.st_ino
    assert mode(cache) == 0o640
    assert not ROOT or (found.st_uid, found.st_gid) == (OTHER, OTHER + 1)
    assert sorted(os.listdir(tmp_path)) == ["m", "rows.cache", "rows.svm"]


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("name", ["rows.cache", "rows.vw"])
def test_a_link_stays(tmp_path, name):
    """Its target is replaced."""
    rows, link, place = svmlight(tmp_path / "rows.svm"), tmp_path / name, tmp_path / "place"
    place.mkdir()
    link.symlink_to(place / "target")
    for _ in range(2):
        called("convert", rows, link, "--quiet")
        assert link.is_symlink()
    assert os.listdir(place) == ["target"]
    assert link.read_bytes() == (place / "target").read_bytes() != b""


def test_a_cache_for_a_device(tmp_path):
    """It is written there; the device stays."""
    called("convert", svmlight(tmp_path / "rows.svm"), "/dev/null", "--to", "cache", "--quiet")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# ---- the cache of data sets ----------------------------------------------------------------------


@pytest.fixture
def pcmac(tmp_path, monkeypatch, umask):
    """A small file of a known data set, and a temporary folder of its own."""
    umask(0o022)
    svmlight(tmp_path / "pcmac.svm")
    (tmp_path / "tmp").mkdir()
    monkeypatch.delenv("THRESHER_CACHE", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


def loaded(folder):
    with pytest.warns(UserWarning, match="differs from the known file"):
        return datasets.load("pcmac", folder)


def test_other_users_cannot_read_the_cache(pcmac):
    loaded(pcmac)
    folder = pcmac / "tmp" / f"thresher-datasets-{os.getuid()}"
    assert mode(folder) == 0o700
    assert len(list(folder.iterdir())) == 1


def test_a_new_folder_of_the_user_is_private(pcmac, monkeypatch):
    monkeypatch.setenv("THRESHER_CACHE", str(pcmac / "some" / "cache"))
    loaded(pcmac)
    assert mode(pcmac / "some" / "cache") == 0o700


def test_a_cache_that_others_may_write_is_not_used(pcmac):
    folder = pcmac / "tmp" / f"thresher-datasets-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    first, second = loaded(pcmac), loaded(pcmac)
    assert not list(folder.iterdir())
    np.testing.assert_array_equal(first.y_train, second.y_train)


def test_saved_models_keep_their_mode(tmp_path):
    path = tmp_path / "m"
    model = FTRLClassifier().fit([[0.0], [1.0]] * 5, [0, 1] * 5).model_
    model.save(path)
    path.chmod(0o640)
    model.save(path)
    assert mode(path) == 0o640


@pytest.mark.parametrize(("allowed", "kept"), [(0o644, True), (0o755, True), (0o600, False)])
def test_a_file_system_without_modes(tmp_path, monkeypatch, umask, allowed, kept):
    """New files have mode 644. They are written, unless others could do more than before."""
    umask(0o022)
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(allowed)

    def refused(*_):
        raise OSError(95, "Operation not supported")

    opened = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, _=0: opened(path, flags, 0o644))
    monkeypatch.setattr(os, "fchmod", refused)
    if kept:
        write_whole(path, b"new")
    else:
        with pytest.raises(OSError, match="not supported"):
            write_whole(path, b"new")
    assert path.read_bytes() == (b"new" if kept else b"old")
