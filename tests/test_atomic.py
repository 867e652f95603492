"""Files that are written as a whole, one or several at once."""

import errno
import os
import subprocess
import sys

import pytest

from support.syncs import of_folders, watched
from thresher import atomic
from thresher.atomic import NewFile, check_place, clear_leftovers, write_whole, written_together
from thresher.disk_sync import sync_file, sync_folder
from thresher.file_access import naming


@pytest.fixture(params=[True, False], ids=["unnamed", "named"])
def unnamed(request, monkeypatch):
    """The temporary file has no name, or, as on file systems without such files, has one."""
    if not request.param:
        monkeypatch.delattr(os, "O_TMPFILE")
    return request.param


@pytest.fixture
def two(tmp_path):
    """Two files."""
    files = tmp_path / "a", tmp_path / "b"
    for file in files:
        file.write_bytes(b"old")
    return files


def write_together(files):
    with written_together():
        for file in files:
            write_whole(file, b"new")


def contents(files):
    return [file.read_bytes() for file in files]


# ---- one file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stat", "lstat"])
def test_an_error_of_the_disk_is_not_a_missing_file(two, name, monkeypatch):
    """Neither is the file taken for a device and written in place, nor the link replaced."""
    link = two[0].with_name("link")
    link.symlink_to("a")

    def failing(path, *args, **kwargs):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    with monkeypatch.context() as patched:
        patched.setattr(os, name, failing)
        with pytest.raises(OSError, match="Input/output error"):
            write_whole(link, b"n")
        with pytest.raises(OSError, match="Input/output error"):
            check_place(link)
    assert link.is_symlink()
    assert two[0].read_bytes() == b"old"


def test_standard_output_may_be_a_pipe(tmp_path):
    code = "from thresher.atomic import check_place, write_whole; check_place('/dev/stdout');"
    code += "write_whole('/dev/stdout', b'content')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"content"


# ---- several files -------------------------------------------------------------------------------


@pytest.mark.usefixtures("unnamed")
def test_files_that_are_written_together(two):
    with written_together():
        for file in two:
            write_whole(file, b"new")
        assert contents(two) == [b"old", b"old"]
    assert contents(two) == [b"new", b"new"]
    write_whole(two[0], b"later")
    assert contents(two) == [b"later", b"new"]
    assert sorted(os.listdir(two[0].parent)) == ["a", "b"]


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("number", [1, 2])
def test_no_file_is_new_if_one_cannot_be_completed(two, monkeypatch, number):
    files = []
    watched(monkeypatch, lambda path: files.append(path) or errno.ENOSPC * (len(files) == number))
    with pytest.raises(OSError, match="No space left") as caught:
        write_together(two)
    assert caught.value.filename == str(two[number - 1])
    assert contents(two) == [b"old", b"old"]
    assert sorted(os.listdir(two[0].parent)) == ["a", "b"]


@pytest.mark.usefixtures("unnamed")
def test_no_file_is_new_after_an_error_between_them(two):
    def failing():
        yield two[0]
        yield 1 / 0

    with pytest.raises(ZeroDivisionError):
        write_together(failing())
    assert contents(two) == [b"old", b"old"]
    assert sorted(os.listdir(two[0].parent)) == ["a", "b"]


@pytest.mark.usefixtures("unnamed")
def test_a_file_that_cannot_be_renamed(two, monkeypatch):
    """The last step can still fail; nothing is left of the file."""
    rename = os.replace

    def failing(old, new):
        if new == str(two[1]):
            raise OSError(errno.EIO, os.strerror(errno.EIO), old, None, new)
        rename(old, new)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="Input/output") as caught:
        write_together(two)
    assert caught.value.filename == str(two[1])
    assert contents(two) == [b"new", b"old"]
    assert sorted(os.listdir(two[0].parent)) == ["a", "b"]


def test_a_device_among_them(two):
    write_together(["/dev/null", two[0]])
    with pytest.raises(OSError, match="No space left") as caught:
        write_together([two[1], "/dev/full"])
    assert caught.value.filename == "/dev/full"
    assert contents(two) == [b"new", b"old"]


def test_a_program_reads_two_pipes_one_after_the_other(tmp_path):
    """It opens the second pipe only when the first one is closed."""
    pipes = tmp_path / "first", tmp_path / "second"
    for pipe in pipes:
        os.mkfifo(pipe)
    with subprocess.Popen(["cat", *pipes], stdout=subprocess.PIPE) as reader:
        try:
            code = "import sys, test_atomic; test_atomic.write_together(sys.argv[1:])"
            subprocess.run(
                [sys.executable, "-c", code, *pipes],
                cwd=os.path.dirname(__file__), check=True, timeout=60,
            )  # fmt: skip
            assert reader.stdout.read() == b"newnew"
        finally:
            reader.kill()


# ---- temporary files -----------------------------------------------------------------------------


def test_a_forked_process_does_not_remove_a_file(tmp_path, unnamed):
    new = NewFile(tmp_path / "a")
    assert len(os.listdir(tmp_path)) == (0 if unnamed else 1)
    child = os.fork()
    if child == 0:
        new.discard()
        os._exit(0)
    os.waitpid(child, 0)
    atomic.put_in_place([new])
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.usefixtures("unnamed")
def test_a_file_that_is_forgotten(tmp_path):
    NewFile(tmp_path / "a")
    assert os.listdir(tmp_path) == []


def test_a_check_of_a_place_leaves_nothing(tmp_path, unnamed, monkeypatch):
    """Not even if the file cannot be closed."""
    close = os.close

    def failing(handle):
        close(handle)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", failing)
        check_place(tmp_path / "a")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    """A device or a pipe in it can be, such as /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "old").touch()
    monkeypatch.setattr(
        os, "access", lambda path, _: os.fspath(path) not in (str(tmp_path), "/dev")
    )
    for name in ("new", "old"):
        with pytest.raises(PermissionError, match=r"the folder .* cannot be written to") as caught:
            check_place(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    for path in (tmp_path / "pipe", "/dev/null"):
        check_place(path)


def test_errors_that_have_a_path_keep_it():
    for given, path in [
        (OSError(errno.EIO, "bad"), "name"),
        (FileNotFoundError(errno.ENOENT, "none", "own"), "own"),
        (OSError("only words"), None),
    ]:
        with pytest.raises(type(given)) as caught, naming("name"):
            raise given
        assert caught.value.filename == path
        assert caught.value.args == given.args


def test_leftovers_of_a_killed_process(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "a"
    child = os.fork()
    if child == 0:
        left = NewFile(path)
        os._exit(left.handle < 0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(os.listdir(tmp_path)) == 1
    clear_leftovers(path)
    assert os.listdir(tmp_path) == []


def test_files_that_are_being_written_are_no_leftovers(tmp_path, unnamed):
    """Several runs may write the same cache, and the first one that ends removes leftovers."""
    path = tmp_path / "a"
    new = NewFile(path)
    os.write(new.handle, b"content")
    clear_leftovers(path)
    new.complete()  # now it has a name in any case
    assert len(os.listdir(tmp_path)) == 1
    clear_leftovers(path)
    new.rename()
    assert path.read_bytes() == b"content"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("mode", [0o200, 0o444])
def test_leftovers_of_any_mode(tmp_path, mode, monkeypatch):
    left = tmp_path / f"a.{'0' * 16}.part"
    left.touch(mode)
    really = os.open

    def as_a_user(path, flags, *rest, **options):
        if mode == 0o200 and not flags & os.O_WRONLY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return really(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", as_a_user)
    clear_leftovers(tmp_path / "a")
    assert not left.exists()


def test_a_pipe_with_the_name_of_a_leftover(tmp_path):
    os.mkfifo(tmp_path / f"a.{'0' * 16}.part")
    clear_leftovers(tmp_path / "a")  # does not wait


def test_an_error_of_the_removal_of_leftovers_is_no_error(tmp_path, monkeypatch):
    left = tmp_path / f"a.{'0' * 16}.part"
    left.touch()

    def failing(path, flags):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        clear_leftovers(tmp_path / "a")
    assert left.exists()


# ---- what can be known before --------------------------------------------------------------------


@pytest.mark.parametrize("call", [check_place, NewFile])
def test_a_file_without_a_name(call):
    with pytest.raises(FileNotFoundError, match="the name of an output file is empty"):
        call("")


@pytest.mark.parametrize(("user", "folder", "may"), [(7, 9, False), (9, 7, False), (8, 9, True)])
def test_files_of_others_in_a_folder_such_as_tmp(tmp_path, monkeypatch, user, folder, may):
    """Only the owner of the file or of the folder may replace it; `os.access` does not say so."""
    path = tmp_path / "a"
    path.touch()
    tmp_path.chmod(0o1777)
    owners = {str(path): 8, str(tmp_path): folder}
    status = os.stat

    def of_owners(path, **options):
        found = list(status(path, **options))
        found[4] = owners.get(os.fspath(path), found[4])
        return os.stat_result(found)

    monkeypatch.setattr(os, "stat", of_owners)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    check_place(tmp_path / "new")
    if may:
        check_place(path)
        return
    with pytest.raises(PermissionError, match="the file is of another user") as caught:
        check_place(path)
    assert caught.value.filename == str(path)


# ---- syncs ---------------------------------------------------------------------------------------


def test_a_file_of_which_the_disk_tells_nothing_is_not_a_device(two, monkeypatch):
    """A checkpoint is removed only when its result is on the disk."""

    def failing(path, *args, **kwargs):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(os, "stat", failing)
    with pytest.raises(OSError, match="Input/output error"):
        sync_file(two[0])


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_that_cannot_sync_folders(tmp_path, monkeypatch, code):
    watched(monkeypatch, of_folders(code))
    write_whole(tmp_path / "a", b"new")
    sync_folder(tmp_path)
    sync_file(tmp_path / "a")


def test_a_folder_that_cannot_be_synced(tmp_path, monkeypatch):
    """The new file has replaced the old one, so that is no error of writing."""
    found = watched(monkeypatch, of_folders(errno.EIO))
    write_whole(tmp_path / "a", b"new")
    for sync, path in ((sync_folder, tmp_path), (sync_file, tmp_path / "a")):
        with pytest.raises(OSError, match="Input/output") as caught:
            sync(path)
        assert caught.value.filename == str(tmp_path)
    assert found[1:] == [str(tmp_path), str(tmp_path), str(tmp_path / "a"), str(tmp_path)]


def test_a_sync_of_what_has_no_disk(tmp_path, monkeypatch):
    found = watched(monkeypatch)
    for path in ("/dev/null", tmp_path / "none", tmp_path):
        sync_file(path)
    assert found == []


def test_a_sync_of_a_file_that_nobody_may_read(tmp_path, monkeypatch):
    path, opened = tmp_path / "a", []
    path.touch()
    really = os.open

    def refusing(name, flags, *mode, **options):
        if os.fspath(name) == str(path):
            opened.append(flags)
            if not flags & os.O_WRONLY:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return really(name, flags, *mode, **options)

    monkeypatch.setattr(os, "open", refusing)
    sync_file(path)
    assert [flags & os.O_WRONLY for flags in opened] == [0, os.O_WRONLY]
