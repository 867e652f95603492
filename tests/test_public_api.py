"""The public interface is the recorded one, so that no name or default changes by accident."""

import pytest

from support import public_api
from thresher import FTRLClassifier


def test_the_public_interface_is_the_recorded_one():
    assert public_api.RECORD.is_file(), "run `make api`"
    message = public_api.difference(public_api.recorded(), public_api.lines())
    if message:
        pytest.fail(message, pytrace=False)


def test_the_record_has_all_kinds_of_lines():
    kinds = {line.split(" ", 1)[0] for line in public_api.recorded()}
    assert kinds == {
        "address", "attribute", "class", "command", "constant", "function", "loss", "method",
        "module", "name", "option", "parameter", "rule",
    }  # fmt: skip


def test_the_message_says_what_changed_and_what_to_do():
    before = public_api.recorded()
    gone = "parameter thresher.FTRLClassifier(l2=0.0) by name"
    now = [line for line in before if line != gone] + ["loss new"]
    message = public_api.difference(before, now)
    assert f"  - {gone}\n  + loss new\n" in message
    assert "docs/stability.md" in message
    assert message.endswith("run `make api`, and commit the record with it.")
    assert "break" not in public_api.difference(before, [*before, "loss new"])
    assert public_api.difference(before, before) == ""


class Changed(FTRLClassifier):
    """An estimator.

    Attributes
    ----------
    first_, second_ : int
    third_ : object
        Its text: more.

    Notes
    -----
    other : not an attribute
    """

    def __init__(self, l2: float = 1.0, *, kind: type = int) -> None:
        self.l2 = l2
        self.kind = kind

    def added(self, rows, *more, top: int = 3) -> None:
        """Do nothing."""


Changed.__module__ = "thresher.changed"


def test_parameters_methods_and_documented_attributes_are_found():
    found = set(public_api.of_class("here.Changed", Changed))
    assert {
        "class here.Changed",
        "parameter here.Changed(l2=1.0) position 1",
        "parameter here.Changed(kind=int) by name",
        "method here.Changed.added(rows, *more, top=3)",
        "attribute here.Changed.first_",
        "attribute here.Changed.second_",
        "attribute here.Changed.third_",
        "attribute here.Changed.model_",
    } <= found
    assert "attribute here.Changed.other" not in found
    assert not any("get_params" in line or "take" in line for line in found)
