"""A cache is current until a file or an option changes."""

from __future__ import annotations

import json
import os

import pytest

from support.caches import plain_block, write_cache
from thresher.data import cache


class TestFingerprints:
    def test_current_until_something_changes(self, tmp_path):
        source, path = tmp_path / "data.svm", tmp_path / "a.cache"
        source.write_bytes(b"1 2:3\n" * 50_000)
        options = {"bits": 18, "interactions": ("ab",)}
        now = cache.fingerprint([source])
        assert cache.is_current(path, now, options) == "there is no cache yet"
        write_cache(path, plain_block(), about=cache.about(now, options))
        assert cache.is_current(path, cache.fingerprint([source]), options) is True
        reason = cache.is_current(path, now, options | {"bits": 20})
        assert reason == "bits was 18 and is 20"
        reason = cache.is_current(path, now, options | {"zero_based": True})
        assert reason == "zero_based was not given and is true"
        assert cache.is_current(path, [*now, *now], options) == "it was made from other files"
        os.utime(source, ns=(0, 12345))
        changed = cache.fingerprint([source])
        assert cache.is_current(path, changed, options) == f"{source} changed"
        path.write_bytes(path.read_bytes()[:-1])
        assert "cut short" in cache.is_current(path, now, options)
        for header, reason in (
            ({"version": -1, "options": {}, "sources": []}, "another version of Thresher made the"),
            ({"version": cache.VERSION, "options": {}}, "does not say what it was made from"),
            ({"version": cache.VERSION, "options": 1, "sources": []}, "does not say what it was"),
            ([], "does not say what it was made from"),
        ):
            write_cache(path, plain_block(), about=json.dumps(header))
            assert reason in cache.is_current(path, changed, options)
        write_cache(path, plain_block(), about="nothing")
        assert "does not say" in cache.is_current(path, now, options)

    @pytest.mark.parametrize("at", [0, 65_535, 65_536, 100_000])
    def test_a_change_at_either_end_of_a_file(self, tmp_path, at):
        source = tmp_path / "data.svm"
        found = []
        for byte in b"ab":
            text = bytearray(b"x" * 100_001)
            text[at] = byte
            source.write_bytes(text)
            os.utime(source, ns=(0, 0))
            found += cache.fingerprint([source])
        assert found[0] != found[1]
        assert found[0]["size"] == 100_001
