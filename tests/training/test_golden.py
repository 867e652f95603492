"""Models of every rule, input and way of training are bit-identical to those of earlier commits.

`golden.json` has a SHA-256 of each model; `make golden` writes it.
A commit that changes a hash must say why. Its key "not today" lists cells that could not be
trained, with the reason.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from support.golden_cases import cells_of, hash_of
from support.golden_data import Folder
from thresher.rules import RULES

GOLDEN = Path(__file__).parents[1] / "golden.json"
# exp and log are functions of the system; on others they may differ in the last bit.
PLATFORM = f"{platform.system()} {platform.machine()}"


def found_of(rule: str, folder: Path, without: object = ()) -> tuple[dict, dict]:
    """Return the hashes of the cells of a rule, and the reasons why others are impossible."""
    hashes, impossible = {}, {}
    for name, train in cells_of(rule, Folder(folder)):
        if name in without:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # three passes are too few for some rules
                hashes[name] = hash_of(train())
        except Exception as error:  # for the command line it is an AssertionError
            impossible[name] = str(error).replace(str(folder), "")
    return hashes, impossible


@pytest.mark.parametrize("rule", RULES)
def test_golden(rule: str, tmp_path: Path) -> None:
    golden = json.loads(GOLDEN.read_text())
    if golden["platform"] != PLATFORM:
        pytest.skip(f"the hashes were computed on {golden['platform']}")
    hashes, impossible = found_of(rule, tmp_path, golden["not today"].get(rule, {}))
    assert not impossible, f"these cells were possible before: {impossible}"
    before = golden["hashes"][rule]
    assert list(hashes) == list(before), "the cells are not those of golden.json"
    changed = [name for name in before if hashes[name] != before[name]]
    assert not changed, f"{rule}: results have changed in {', '.join(changed)}"


@pytest.mark.parametrize("rule", ["ftrl", "hard-threshold"])  # validation rows; eigenvalues
def test_other_instructions_of_blas_and_numpy_give_the_same_bits(rule: str) -> None:
    """BLAS adds in another order on other processors; NumPy has other functions."""
    golden = json.loads(GOLDEN.read_text())
    if golden["platform"] != PLATFORM or platform.machine() != "x86_64":
        pytest.skip("the names of processors are those of x86-64")
    older = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": "X86_V4 X86_V3"}
    done = subprocess.run(
        [sys.executable, __file__, "--print", rule],
        env={**os.environ, **older, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == golden["hashes"][rule]


@pytest.mark.parametrize("rule", RULES)
def test_resumed_runs_equal_uninterrupted_ones(rule: str) -> None:
    hashes = json.loads(GOLDEN.read_text())["hashes"][rule]
    for name, found in hashes.items():
        cell, _, way = name.rpartition("/")
        if way == "resumed":
            whole = "one" if cell in ("pipe/train", "csr/partial_fit") else "shuffled"
            assert found == hashes[f"{cell}/{whole}"], name


def write() -> None:
    """Compute and write all hashes."""
    content = {"platform": PLATFORM, "hashes": {}, "not today": {}}
    for rule in RULES:
        with tempfile.TemporaryDirectory() as folder:
            content["hashes"][rule], impossible = found_of(rule, Path(folder))
        if impossible:
            content["not today"][rule] = impossible
    GOLDEN.write_text(json.dumps(content, indent=1) + "\n")


def print_hashes(rule: str) -> None:
    """Print the hashes of a rule as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(found_of(rule, Path(folder))[0]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--print"]:
        print_hashes(sys.argv[2])
    elif sys.argv[1:] == ["--write"]:
        write()
    else:
        sys.exit("usage: make golden")
