"""Models from a search keep the frontier of the search, also in their files."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import thresher
from fuzzing.targets import Safetensors, sealed_model
from support.pages import TRUNCATED, TWO, X, parsed, section
from thresher import FTRLClassifier, ModelFileError, OnePassSearchCV, SparsityPath
from thresher.report.model_page import model_page


def test_models_of_a_search_have_its_frontier(tmp_path):
    path = SparsityPath(TRUNCATED, [1e-5, 1e-3, 1e-1], cv=3).fit(X, TWO)
    for number, model in enumerate(path.models_):
        assert model.frontier.at == number
        assert [d.nonzeros for d in model.frontier.dots] == path.nonzeros_.tolist()
        assert [d.error for d in model.frontier.dots] == path.errors_.tolist()
    assert path.best_estimator_.model_.frontier.at == path.best_index_
    search = OnePassSearchCV(FTRLClassifier(random_state=0), {"l1": [0.1, 1.0, 10.0]}, cv=3)
    found = search.fit(X, TWO).best_estimator_.model_.frontier
    assert found.at == search.best_index_
    assert found.measure == "error rate"
    np.testing.assert_allclose(
        [dot.error for dot in found.dots], 1 - search.cv_results_["mean_test_score"]
    )
    again = pickle.loads(pickle.dumps(search)).best_estimator_
    assert again.model_.frontier == found
    assert again.partial_fit(X, TWO).model_.frontier is None
    several = OnePassSearchCV(
        FTRLClassifier(random_state=0), {"l1": [0.1, 1.0]}, cv=2,
        scoring={"a": "accuracy", "l": "neg_log_loss"}, refit="l",
    ).fit(X, TWO)  # fmt: skip
    assert several.best_model_.frontier.measure == "log loss"
    html = model_page(search.best_model_)
    assert "One of 3 models of a search: l1=" in section(html, "frontier")
    assert "this model" in section(html, "frontier")
    own = replace(
        search.best_model_,
        frontier=replace(found, dots=(replace(found.dots[0], nonzeros=6.5),), at=0),
    )
    weights = (
        f"6.5 nonzero weights (mean over folds); this model, trained on all rows, has {own.nnz}."
    )
    assert weights in section(model_page(own), "frontier")
    assert "mean over folds" not in section(model_page(path.models_[0]), "frontier")
    assert len(parsed(html).findall(".//section[@id='frontier']//circle[title]")) == 3


def test_the_frontier_is_saved_and_loaded(tmp_path):
    model = SparsityPath(TRUNCATED, [1e-5, 1e-3], cv=2).fit(X, TWO).best_estimator_.model_
    model.save(tmp_path / "a")
    loaded = thresher.load(tmp_path / "a")
    assert loaded.frontier == model.frontier
    loaded.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    replace(model, frontier=None).save(tmp_path / "c")
    assert b"frontier" not in (tmp_path / "c").read_bytes()
    assert thresher.load(tmp_path / "c").frontier is None


@pytest.mark.parametrize(
    "damage",
    [
        None, [], {}, {"at": 7}, {"at": -1}, {"at": True}, {"at": 0.0}, {"models": {}},
        {"models": [["a", 1.0]]}, {"models": [["a", 1.0, "x", None]]}, {"measure": 3},
        {"models": [["a", -1.0, 0.5, None]]}, {"models": [["a", 1.0, float("inf"), None]]},
        {"models": [[1, 1.0, 0.5, None]]}, {"models": [["a", 1.0, 0.5, -0.1]]}, {"models": [3]},
        {"models": [["a", 5e-324, 0.5, None]]}, {"models": [["a", 1e300, 0.5, None]]},
    ],
)  # fmt: skip
def test_damaged_frontiers_are_refused(damage, tmp_path):
    model = SparsityPath(TRUNCATED, [1e-5, 1e-3], cv=2).fit(X, TWO).models_[0]
    model.save(tmp_path / "a")
    parts = Safetensors((tmp_path / "a").read_bytes())
    whole = parts.about["frontier"]
    parts.about["frontier"] = {**whole, **damage} if isinstance(damage, dict) and damage else damage
    (tmp_path / "a").write_bytes(sealed_model(parts.pack()) or b"")
    with pytest.raises(ModelFileError, match="damaged"):
        thresher.load(tmp_path / "a")
