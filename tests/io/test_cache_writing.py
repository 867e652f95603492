"""Writing a cache: an incomplete file never stays on disk."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys

import pytest

from support.caches import plain_block, write_cache
from thresher import _core
from thresher.data.cache_writer import CacheWriter


class TestWriting:
    def test_an_abandoned_writer_leaves_no_file(self, tmp_path):
        path = tmp_path / "a.cache"
        before = write_cache(path, plain_block())

        def fail() -> None:
            with CacheWriter(path, "{}") as writer:
                writer.add(plain_block())
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        writer = CacheWriter(path, "{}")
        writer.add(plain_block())
        del writer
        gc.collect()
        writer = CacheWriter(path, "{}")
        writer.abandon()
        with pytest.raises(ValueError, match="finished or abandoned"):
            writer.add(plain_block())
        assert os.listdir(tmp_path) == ["a.cache"]
        assert path.read_bytes() == before

    def test_full_disk(self, tmp_path):
        path = tmp_path / "a.cache"
        before = write_cache(path, plain_block())
        code = f"""
import os, resource, signal
import numpy as np
from thresher import _core
from thresher.data.cache_writer import CacheWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
block = _core.make_block(np.array([0, 5000]), np.arange(5000), np.full(5000, 1 / 3), np.ones(1))
for room in (10, 40, 1000, 60_500):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    try:
        with CacheWriter({str(path)!r}, "{{}}") as writer:
            writer.add(block)
            writer.finish()
    except OSError as error:
        print(error.errno, error.filename, os.listdir({str(tmp_path)!r}))
"""
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert run.stdout.splitlines() == 4 * [f"{errno.EFBIG} {path} ['a.cache']"]
        assert path.read_bytes() == before

    def test_a_forked_process_does_not_remove_the_file(self, tmp_path):
        writer = CacheWriter(tmp_path / "a.cache", "{}")
        writer.add(plain_block())
        child = os.fork()
        if child == 0:
            writer.abandon()
            os._exit(0)
        os.waitpid(child, 0)
        writer.finish()
        assert _core.CacheReader(tmp_path / "a.cache").rows == 3

    def test_paths_that_cannot_be_written(self, tmp_path):
        with pytest.raises(FileNotFoundError) as caught:
            CacheWriter(tmp_path / "none" / "a.cache", "{}")
        assert caught.value.filename == str(tmp_path / "none" / "a.cache")
        (tmp_path / "folder" / "full").mkdir(parents=True)
        with pytest.raises(OSError, match="folder"):
            write_cache(tmp_path / "folder", plain_block())
        assert os.listdir(tmp_path) == ["folder"]

    def test_permissions_are_those_of_open(self, tmp_path):
        write_cache(tmp_path / "a", plain_block())
        (tmp_path / "b").touch()
        assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
