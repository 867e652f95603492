"""The check of near-copies: of the features that are selected at the end, with enough redraws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import thresher
from support.discovery_cases import discovered
from support.slices import sliced
from thresher import FeatureDiscovery
from thresher.discovery.near_copies import SHARE, NearCopies
from thresher.discovery.row_checks import Check
from thresher.discovery.sums import EvidenceSums

pytestmark = pytest.mark.filterwarnings("ignore::thresher.discovery.DiscoveryWarning")


def check_of(found: FeatureDiscovery) -> Check:
    (check,) = [check for check in found.checks_ if check.name == "near-copies"]
    return check


def rows(copies: bool, n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Return 40 columns of which 8 have an effect; with copies, 20 to 27 are near-copies."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, 40))
    if copies:
        X[:, 20:28] = X[:, :8] + 0.1 * rng.normal(size=(n, 8))
    return X, X[:, :8].sum(axis=1) + rng.logistic(size=n) > 0


def test_the_check_is_of_the_features_that_joint_keeps() -> None:
    X, y = rows(copies=True)
    plain, joint = (check_of(discovered(form=form).fit(X, y)) for form in ("crossfit", "joint"))
    assert not plain.fine
    assert plain.value > 0.9
    assert "for example" in plain.message
    assert joint.fine
    assert joint.value == 0


@pytest.mark.parametrize("redraws", [3, 5, 7, 9])
def test_few_redraws_give_no_alarm(redraws: int) -> None:
    X, y = rows(copies=False)
    check = check_of(discovered(redraws=redraws, fdr=0.5).fit(X, y))
    assert check.fine
    assert check.message == f"not checked: {redraws} redraws are too few to tell them from chance"


def test_independent_features_are_not_near_copies() -> None:
    X, y = rows(copies=False)
    assert check_of(discovered().fit(X, y)).message.startswith("0% of the selected")


@pytest.mark.parametrize("n", sliced([4, 16, 60, 300], 0, 1, 2))
def test_false_alarms_are_rare_if_there_are_enough_redraws(n: int) -> None:
    rng, checked = np.random.default_rng(n), []
    for redraws in (8, 10, 12, 15, 20):
        alarms = 0
        for _ in range(100):
            sums = EvidenceSums(*np.ones((5, n)), rng.normal(size=(n, redraws)), None)
            copies = NearCopies.of([sums], np.arange(n), np.ones(n))
            alarms += copies.share(np.arange(n))[0] > SHARE
        if copies.enough(np.arange(n)):
            checked.append(redraws)
            assert alarms <= 12  # 5 are expected at most
    assert 20 in checked
    assert 8 not in checked or n == 4


def test_the_check_is_of_the_selected_namespaces(tmp_path: Path) -> None:
    """One feature has an effect; the near-copies are others of its namespace."""
    rng = np.random.default_rng(0)
    words = rng.random((1500, 6)) < 0.5
    y = 2 * words[:, 0] + rng.logistic(size=1500) > 1
    lines = []
    for label, row in zip(y, words, strict=True):
        own = " ".join(f"w{j} copy{j}" if j else "w0" for j in np.flatnonzero(row[:3]))
        rest = " ".join(f"v{j}" for j in np.flatnonzero(row[3:]))
        lines.append(f"{2 * label - 1} |word {own} |other {rest}\n")
    path = tmp_path / "rows.vw"
    path.write_text("".join(lines))
    found = discovered(feature_groups="namespace", expected_false=0.05).fit(thresher.scan(path))
    assert found.selected_groups_.tolist() == ["word"]
    assert len(found.selected_) == 5
    check = check_of(found)
    assert check.value == 0.8
    assert "word^" in check.message


def test_no_feature_and_one_feature() -> None:
    S = np.random.default_rng(0).normal(size=(3, 20))
    sums = EvidenceSums(*np.ones((5, 3)), S, None)
    for chosen in (np.arange(0), np.arange(1)):
        copies = NearCopies.of([sums], chosen, np.ones(3))
        assert copies.enough(chosen)
        assert copies.share(chosen) == (0.0, [])
