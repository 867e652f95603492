"""Requests that are odd: repeated members."""

import time

import pytest

from thresher.serving.question import json_of
from thresher.serving.refusal import Refusal


def test_a_repeated_member_of_a_large_object_is_found_quickly():
    names = ",".join(f'"{i}":1' for i in range(40_000))
    begin = time.perf_counter()
    with pytest.raises(Refusal, match="'39999' occurs twice"):
        json_of(f'{{{names},"39999":2}}'.encode())
    assert time.perf_counter() - begin < 5  # comparing each name with all takes 30 s
