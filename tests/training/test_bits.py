"""A checkpoint of a version with other results is refused; the message names the behaviour."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import thresher
from fixtures import make
from support.files import called
from thresher.errors import ModelFileError
from thresher.rules import RULES
from thresher.training import checkpoint as checkpoints
from thresher.training.bits import BITS, RULE_BITS, bits_of, check_bits
from thresher.training.checkpoint import TrainingCheckpoint

EARLY = "0.1.0 or earlier"


@pytest.fixture
def folder(tmp_path):
    """Change to a folder with a copy of the files of version 0.1.0."""
    shutil.copytree(Path(make.__file__).parent / "0.1.0", tmp_path, dirs_exist_ok=True)
    with make.working_in(tmp_path):
        yield tmp_path


def refusal(path, name, then, now, version=EARLY):
    return (
        f"{path}: written by Thresher {version}, whose results differ from this version's in "
        f"{name} ({then}, now {now}); finish it with that version, or start again"
    )


def resumed(name, code=0):
    return called(
        "train", *make.SERIAL[name][0], "-m", f"{name}.thresher", "--resume", code=code
    ).stderr


def test_every_rule_has_a_number():
    for rule in RULES:
        assert bits_of(rule, shuffle=False).keys() == {"summation", "defaults", rule}
    assert bits_of("ftrl", True, named=True).keys() - bits_of("ftrl", False) == {
        "shuffling", "hashing",
    }  # fmt: skip


def test_only_rows_with_weights_depend_on_their_meaning():
    for rule, spec in RULES.items():
        found = bits_of(rule, False, weighted=True).keys() - bits_of(rule, False)
        assert found == ({"weights"} if spec.repeats_rows else set())


def test_missing_numbers_are_1():
    for saved in (None, {}, {"ftrl": 1}, {"ftrl": 1, "other": 1}):
        check_bits(saved, {"ftrl": 1, "shuffling": 1}, "a", "0.1.0")
    for saved, now, named in (
        (None, {"ftrl": 2}, "ftrl"),
        ({"ftrl": 2}, {"ftrl": 2, "shuffling": 3}, "shuffling"),
        ({"ftrl": 2, "other": 2}, {"ftrl": 2}, "other"),
        ({"ftrl": 2}, {"ftrl": 1}, "ftrl"),
    ):
        with pytest.raises(ModelFileError, match=f"results differ from this version's in {named} "):
            check_bits(saved, now, "a", "0.1.0")


@pytest.mark.usefixtures("folder")
def test_a_run_of_a_version_with_other_results_is_refused(monkeypatch):
    # Only "shuffling" matters: the run shuffles, its features have no names, its rule is not FTRL.
    monkeypatch.setitem(BITS, "hashing", 2)
    monkeypatch.setitem(RULE_BITS, "ftrl", 2)
    monkeypatch.setitem(BITS, "shuffling", 3)
    path = "single.thresher.checkpoint"
    assert refusal(path, "shuffling", 1, 3) in resumed("single", code=1)
    assert Path(path).exists()
    monkeypatch.setitem(BITS, "shuffling", 1)
    resumed("single")


@pytest.mark.usefixtures("folder")
def test_a_checkpoint_has_the_numbers_of_its_run(monkeypatch):
    """A run with a number of 2 is resumed by the same version, and refused by one with 1."""
    path = Path("named.thresher.checkpoint")
    path.unlink()
    began = ("train", *make.SERIAL["named"][0], "-m", "named.thresher", "--every", "0s", "--json")
    with monkeypatch.context() as later:
        later.setitem(RULE_BITS, "ftrl", 2)
        called(*began, code=130, stdout=make.Interrupting(5))
        content = path.read_bytes()
        resumed("named")
    path.write_bytes(content)
    assert refusal(path, "ftrl", 2, 1, thresher.__version__) in resumed("named", code=1)
    assert checkpoints.read(path).about["bits"] == bits_of("ftrl", False, named=True) | {"ftrl": 2}


@pytest.mark.usefixtures("folder")
def test_a_comparison_of_a_version_with_other_results_is_refused(monkeypatch):
    kept = Path("compare.json").read_bytes()
    for rule in list(RULE_BITS):  # as in version 0.1.0
        monkeypatch.delitem(RULE_BITS, rule)
    with monkeypatch.context() as later:
        later.setitem(BITS, "comparison", 2)
        message = refusal("compare.json", "comparison", 1, 2, "0.1.0")
        with pytest.raises(ModelFileError, match=re.escape(message)):
            make.of_comparison()
    assert Path("compare.json").read_bytes() == kept
    monkeypatch.setattr("thresher.comparison.run.__version__", "0.9.0")  # with the same numbers
    make.of_comparison()
    kept = json.loads(Path("compare.json").read_text())["bits"]
    assert kept.keys() == BITS.keys() - {"weights"}  # a comparison ignores weights


def test_the_numbers_are_part_of_the_digest():
    one, two = (TrainingCheckpoint({"bits": {"ftrl": n}}, [b"a"]) for n in (1, 2))
    assert one.digest != two.digest
