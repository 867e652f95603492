"""`thresher train --resume`: options that are taken from the checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

import thresher
from support.files import called
from support.golden_cases import Interrupting, hash_of
from support.golden_data import Folder

BEGUN = {
    "truncated-gradient": ["--gravity", "0.02", "--shuffle", "--seed", "3", "--passes", "3"],
    "ftrl": ["--l1", "2", "--alpha", "0.5", "--passes", "3", "--loss", "hinge"],
    "margin-perceptron": ["--margin", "0.5", "--passes", "3", "--store", "hashed"],
    "stabilized": ["--paths", "4", "--variant", "paper", "--passes", "30", "--seed", "2"],
    "coordinate-descent": ["--l1", "0.0001"],
    "hard-threshold": ["--n-nonzero", "5"],
}


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    """Files of a few rows each: training can stop after each file."""
    return Folder(tmp_path).text("two", "svmlight")


@pytest.mark.parametrize("rule", BEGUN)
def test_the_rule_and_its_parameters_are_taken_from_the_checkpoint(
    tmp_path: Path, data: list[str], rule: str
) -> None:
    given = ["--rule", rule, *BEGUN[rule]]
    whole, model = tmp_path / "whole.thresher", tmp_path / "model.thresher"
    called("train", *data, "-m", whole, *given, "--quiet")
    began = ["train", *data, "-m", model, *given, "--every", "0s", "--json"]
    called(*began, code=130, stdout=Interrupting(2))
    done = called("train", *data, "-m", model, "--resume")
    assert "continuing after" in done.stderr
    assert hash_of(thresher.load(model)) == hash_of(thresher.load(whole))
    assert not Path(f"{model}.checkpoint").exists()


def test_options_given_again_must_be_the_same(tmp_path: Path, data: list[str]) -> None:
    model = tmp_path / "model.thresher"
    began = ["train", *data, "-m", model, "--l1", "2", "--passes", "3", "--every", "0s", "--json"]
    called(*began, code=130, stdout=Interrupting(2))
    resumed = ["train", *data, "-m", model, "--passes", "3", "--resume"]
    done = called(*resumed, "--l1", "3", code=1)
    assert "--l1 was 2.0 in the run that wrote it, and is 3.0 now" in done.stderr
    done = called(*resumed, "--rule", "truncated-gradient", code=1)
    assert "rule was 'ftrl'" in done.stderr
    called(*resumed, "--l1", "2")


def test_a_finished_model_is_not_replaced_by_a_run_with_other_options(
    tmp_path: Path, data: list[str]
) -> None:
    """A run that finished has no checkpoint, so that --resume cannot take its options from it."""
    model = tmp_path / "m.thresher"
    run = ["train", *data, "-m", model, "--rule", "truncated-gradient", "--resume", "--quiet"]
    called(*run, "--gravity", "1e-3")
    kept = model.read_bytes()
    done = called(*run, code=2)
    assert "its gravity is 0.001, and auto now" in done.stderr
    assert "leave out --resume" in done.stderr
    assert model.read_bytes() == kept
    called(*run, "--gravity", "1e-3")  # the same command gives the same model
    assert model.read_bytes() == kept
