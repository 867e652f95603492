"""Model files with the state of the learner: training goes on, and loading stays lazy and safe."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import thresher
from fuzzing.targets import sealed_model
from thresher import ModelFileError, ParameterError
from thresher.model import file as model_file
from thresher.model.tensor_file import TensorFile

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 12))
SCORE = X[:, 0] - X[:, 3] + 0.3 * RNG.normal(size=600)
TWO = np.where(SCORE > 0, "yes", "no")
THREE = np.digitize(SCORE, [-0.6, 0.6])
RULES: list[tuple[str, dict[str, Any]]] = [
    ("OnePass", {}),
    ("FTRL", {"l1": 0.3, "alpha": 0.1}),
    ("FTRL", {"target_nnz": 4, "store": "hashed"}),
    ("TruncatedGradient", {"gravity": 0.01, "average": True}),
    ("AdaGrad", {"dtype": "float64"}),
    ("AveragedSGD", {"center": True}),
    ("DualAveraging", {}),
    ("ForwardBackward", {}),
    ("MirrorDescent", {}),
    ("MarginPerceptron", {"levels": (0.2, 0.5)}),
]
# A DivergenceWarning of so few rows does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def begun(name: str, params: dict[str, Any], y: Any, rows: int = 300) -> Any:
    """Return an estimator that has learned some rows."""
    estimator = getattr(thresher, f"{name}Classifier")(random_state=0, **params)
    given = {"mean": X.mean(0)} if params.get("center") else {}
    return estimator.partial_fit(X[:rows], y[:rows], classes=np.unique(y), **given)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.thresher"


def saved_bytes(estimator: Any, path: Path) -> bytes:
    estimator.model_.save(path, state=True)
    return path.read_bytes()


# ---- training goes on ----------------------------------------------------------------------------


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(("name", "params"), RULES)
def test_partial_fit_goes_on_from_a_file(
    name: str, params: dict[str, Any], y: Any, path: Path
) -> None:
    estimator = begun(name, params, y)
    estimator.model_.save(path, state=True)
    loaded = thresher.load(path).estimator()
    assert type(loaded) is type(estimator)
    assert loaded.get_params() == estimator.get_params()
    np.testing.assert_array_equal(loaded.decision_function(X), estimator.decision_function(X))
    assert saved_bytes(loaded, path) == saved_bytes(estimator, path)
    for each in (estimator, loaded):
        each.partial_fit(X[300:], y[300:])
    assert saved_bytes(loaded, path) == saved_bytes(estimator, path)
    assert [r.examples for r in loaded.history_] == [r.examples for r in estimator.history_]


@pytest.mark.parametrize("name", ["OnePass", "FTRL", "TruncatedGradient", "AveragedSGD"])
def test_a_warm_start_goes_on_from_a_file(name: str, path: Path) -> None:
    """The targets of a regression are standardised; a further pass keeps their scale."""
    made = getattr(thresher, f"{name}Regressor")(random_state=0, warm_start=True, passes=2)
    made.fit(X[:300], SCORE[:300]).model_.save(path, state=True)
    loaded = thresher.load(path).estimator()
    for each in (made, loaded):
        each.fit(X[:300], SCORE[:300])
    assert saved_bytes(loaded, path) == saved_bytes(made, path)
    assert loaded.n_iter_ == made.n_iter_ == 4


def test_label_sets_class_weights_and_a_refit_are_kept(path: Path) -> None:
    Y = np.column_stack([SCORE > 0, X[:, 5] > 0, SCORE > 1]).astype(int)
    sets = thresher.FTRLClassifier(random_state=0).fit(X, Y)
    sets.model_.save(path, state=True)
    loaded = thresher.load(path).estimator()
    np.testing.assert_array_equal(loaded.partial_fit(X, Y).coef_, sets.partial_fit(X, Y).coef_)
    weighted = thresher.FTRLClassifier(class_weight={0: 2.0, 2: 0.5}, random_state=0)
    weighted.fit(X, THREE).model_.save(path, state=True)
    assert thresher.load(path).estimator().class_weight == {0: 2.0, 2: 0.5}
    refitted = thresher.FTRLClassifier(target_nnz=2, random_state=0).fit(X, TWO)
    refitted.model_.save(path, state=True)
    loaded = thresher.load(path).estimator()
    assert loaded.refit_ == refitted.refit_
    assert loaded.refit_.outputs is not None
    np.testing.assert_array_equal(loaded.coef_, refitted.coef_)


def test_dicts_and_one_row_go_on_with_their_names(path: Path) -> None:
    pairs = zip(THREE.tolist(), X[:, 0].tolist(), strict=True)
    rows = [{"word": str(word), "size": size} for word, size in pairs]
    one = thresher.FTRLClassifier(random_state=0)
    for row, label in zip(rows[:200], TWO[:200], strict=True):
        one.learn_one(row, label)
    one.model_.save(path, state=True)
    loaded = thresher.load(path).estimator()
    for row, label in zip(rows[200:], TWO[200:], strict=True):
        assert loaded.predict_one(row) == one.predict_one(row)
        one.learn_one(row, label)
        loaded.learn_one(row, label)
    np.testing.assert_array_equal(loaded.model_.weights, one.model_.weights)
    assert loaded.model_.names == one.model_.names


def test_frames_keep_their_columns_and_their_label(path: Path) -> None:
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)]).assign(sold=TWO)
    made = thresher.FTRLClassifier(random_state=0).fit(frame, label="sold")
    made.model_.save(path, state=True)
    loaded = thresher.load(path).estimator()
    assert loaded.feature_names_in_.tolist() == made.feature_names_in_.tolist()
    assert loaded.score(frame) == made.score(frame)
    for each in (made, loaded):
        each.partial_fit(frame[frame.columns[::-1]].drop(columns="sold"), TWO)
    np.testing.assert_array_equal(loaded.coef_, made.coef_)
    assert saved_bytes(loaded, path) == saved_bytes(made, path)
    words = pd.DataFrame({"word": THREE.astype(str), "size": X[:, 0]})
    made = thresher.FTRLClassifier(random_state=0).fit(words, TWO)
    made.model_.save(path, state=True)
    loaded = thresher.load(path).estimator()
    np.testing.assert_array_equal(loaded.predict(words), made.predict(words))
    for each in (made, loaded):
        each.partial_fit(words, TWO)
    assert saved_bytes(loaded, path) == saved_bytes(made, path)


def test_an_estimator_without_a_state_predicts_and_says_why_it_cannot_go_on(path: Path) -> None:
    for made in (
        thresher.FTRLClassifier(l1=0.5, class_weight={"yes": 2.0}, random_state=0).fit(X, TWO),
        thresher.CoordinateDescentClassifier(l1=0.01).fit(X, TWO),
        thresher.StabilizedClassifier(target_nnz=2, random_state=0).fit(X, THREE),
    ):
        made.model_.save(path)
        loaded = thresher.load(path).estimator()
        assert type(loaded) is type(made)
        assert loaded.score(X, made.predict(X)) == 1.0
        assert loaded.model_.certificates == made.model_.certificates
        assert clone(loaded).fit(X, TWO).score(X, TWO) > 0.8
        assert loaded.get_params().get("l1") == made.get_params().get("l1")
    thresher.FTRLClassifier(random_state=0).fit(X, TWO).model_.save(path)
    with pytest.raises(ParameterError, match="cannot continue, because the model has no state"):
        thresher.load(path).estimator().partial_fit(X, TWO)
    piped = make_pipeline(MaxAbsScaler(), thresher.load(path).estimator())
    assert piped.fit(X, TWO).score(X, TWO) > 0.8


def test_a_model_whose_estimator_went_on_has_no_state(path: Path) -> None:
    estimator = begun("FTRL", {}, TWO)
    model = estimator.model_
    estimator.partial_fit(X[:10], TWO[:10])
    with pytest.raises(ParameterError, match="has learned more since it made this model"):
        model.save(path, state=True)
    assert not path.exists()
    assert pickle.loads(pickle.dumps(model)).learner is None
    fitted = thresher.CoordinateDescentClassifier(l1=0.01).fit(X, TWO)
    with pytest.raises(ParameterError, match="no state of a learner, because the rule coordinate"):
        fitted.model_.save(path, state=True)


def test_a_loaded_model_is_saved_again_with_its_state(path: Path, tmp_path: Path) -> None:
    estimator = begun("FTRL", {}, TWO)
    content = saved_bytes(estimator, path)
    model = thresher.load(path)
    model.save(tmp_path / "again", state=True)
    assert (tmp_path / "again").read_bytes() == content
    model.save(tmp_path / "without")
    assert thresher.load(tmp_path / "without").learner is None
    plain = tmp_path / "plain"
    estimator.model_.save(plain)
    assert (tmp_path / "without").read_bytes() == plain.read_bytes()


# ---- files ---------------------------------------------------------------------------------------


def parts_of(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["thresher"])
        return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def rewritten(path: Path, change: Any) -> None:
    """Change the description of a state, and seal the file with correct checksums."""
    about, tensors = parts_of(path)
    known = json.loads(tensors["learner_about"].tobytes())
    change(known, tensors)
    tensors["learner_about"] = np.frombuffer(json.dumps(known).encode(), np.uint8)
    save_file(tensors, path, {"thresher": json.dumps(about)})
    content = sealed_model(path.read_bytes())
    assert content is not None
    path.write_bytes(content)


def test_a_file_without_a_state_keeps_its_format_and_one_with_a_state_is_newer(path: Path) -> None:
    """Earlier versions read the first, and refuse the second: a newer version is needed."""
    estimator = begun("FTRL", {}, TWO)
    estimator.model_.save(path)
    assert parts_of(path)[0]["format"] == 2
    estimator.model_.save(path, state=True)
    assert parts_of(path)[0]["format"] == model_file.FORMAT == 3


def test_loading_reads_no_state(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun("OnePass", {}, TWO).model_.save(path, state=True)

    class Watched(TensorFile):
        def array(self, name: str) -> Any:
            read.append(name)
            return super().array(name)

    read: list[str] = []
    monkeypatch.setattr(model_file, "TensorFile", Watched)
    model = thresher.load(path)
    model.predict(X)
    assert read
    assert not [name for name in read if name.startswith("learner_")]
    model.estimator()
    assert "learner_state0" in read


def test_a_state_is_found_from_another_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun("FTRL", {}, TWO).model_.save(path, state=True)
    monkeypatch.chdir(path.parent)
    model = thresher.load(path.name)
    monkeypatch.chdir("/")
    assert model.estimator().partial_fit(X, TWO)


def test_a_file_that_changed_since_it_was_loaded_is_refused(path: Path) -> None:
    estimator = begun("FTRL", {}, TWO)
    estimator.model_.save(path, state=True)
    model = thresher.load(path)
    estimator.partial_fit(X, TWO).model_.save(path, state=True)
    with pytest.raises(ModelFileError, match="has changed since the model was loaded"):
        model.estimator()
    os.unlink(path)
    with pytest.raises(ModelFileError, match="cannot be read again"):
        model.estimator()


def test_a_damaged_state_is_found_when_it_is_used(path: Path) -> None:
    begun("FTRL", {}, TWO).model_.save(path, state=True)
    content = bytearray(path.read_bytes())
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    start = len(content) - max(
        part["data_offsets"][1] for name, part in header.items() if name != "__metadata__"
    )
    begin, end = (start + at for at in header["learner_state0"]["data_offsets"])
    for place in np.random.default_rng(0).integers(begin, end, 20).tolist():
        damaged = bytearray(content)
        damaged[place] ^= 0x11
        path.write_bytes(damaged)
        model = thresher.load(path)
        with pytest.raises(ModelFileError, match="does not match its checksum"):
            model.estimator()


DAMAGE: dict[str, Any] = {
    "parameters": lambda about, _: about["own"].update(l1="x"),
    "requested": lambda about, _: about["requested"].pop("l1"),
    "unknown parameters": lambda about, _: about["params"].update(zeta=3),
    "loss": lambda about, _: about["params"].update(loss="hinge"),
    "outputs": lambda about, _: about.update(outputs=10**9),
    "no outputs": lambda about, _: about.update(outputs=True),
    "rows": lambda about, _: about.update(rows=-1),
    "passes": lambda about, _: about.update(passes=1.5),
    "watch": lambda about, _: about["watch"].update(patience="often"),
    "another watch": lambda about, _: about["watch"].update(see=1),
    "order": lambda about, _: about.update(order={"told": 1}),
    "order of words": lambda about, _: about["order"]["watch"].update(rows=["a"]),
    "labels": lambda about, _: about.update(multilabel="dense"),
    "reading": lambda about, _: about.pop("reading"),
    "names": lambda about, _: about.update(most_names="many"),
    "refit": lambda about, _: about.update(refit={"shares": 3}),
    "entries": lambda about, _: about.clear(),
    "states": lambda _, tensors: tensors.pop("learner_state0"),
    "empty states": lambda _, t: t.update(learner_state0=np.zeros(0, np.uint8)),
    "other states": lambda _, t: t.update(learner_state0=np.arange(200, dtype=np.uint8)),
    "two states": lambda _, t: t.update(learner_state1=t["learner_state0"]),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_state_that_nobody_would_write_is_refused(what: str, path: Path) -> None:
    begun("FTRL", {}, TWO).model_.save(path, state=True)
    rewritten(path, DAMAGE[what])
    model = thresher.load(path)
    assert len(model.predict(X)) == 600
    with pytest.raises(ModelFileError, match="the learner's state is damaged") as caught:
        model.estimator()
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "lanes",
    [
        {"sizes": [10**9], "lane_of": [0, 1, 2]},
        {"sizes": [240] * 10**4, "lane_of": [0, 1, 2]},
        {"sizes": [0, 3], "lane_of": [0, 1, 2]},
        {"sizes": [3], "lane_of": [0, 1, 1]},
        {"sizes": [3], "lane_of": [0, 1, 7]},
        {"sizes": [3], "lane_of": [0, -1, 1]},
        {"sizes": "3", "lane_of": [0]},
        [],
    ],
)
def test_lanes_are_bounded_by_the_file(lanes: Any, path: Path) -> None:
    begun("FTRL", {}, THREE).model_.save(path, state=True)
    content = np.frombuffer(json.dumps(lanes).encode(), np.uint8)
    rewritten(path, lambda _, tensors: tensors.update(learner_state0=content))
    with pytest.raises(ModelFileError, match="the learner's state is damaged"):
        thresher.load(path).estimator()


def test_a_dense_store_is_bounded(path: Path) -> None:
    """The width of the model is that of the store: pages use no memory until they are written."""
    replace(begun("FTRL", {}, TWO).model_, n_features=2**63).save(path, state=True)
    with pytest.raises(ModelFileError, match="too many features for a dense store"):
        thresher.load(path).estimator()


def test_a_state_of_other_bits_is_refused(path: Path) -> None:
    begun("FTRL", {}, TWO).model_.save(path, state=True)
    rewritten(path, lambda about, _: about["bits"].update(summation=7))
    with pytest.raises(
        ModelFileError, match=r"differ from this version's in summation \(7, now 1\)"
    ):
        thresher.load(path).estimator()


@pytest.mark.parametrize(
    "change",
    [
        lambda about, tensors: about.pop("learner"),
        lambda about, tensors: about["learner"].update(bytes=3),
        lambda about, tensors: about["learner"].update(path="/etc/passwd"),
        lambda about, tensors: about.update(learner=3),
        lambda about, tensors: tensors.update(learner_state0=np.zeros(3)),
        lambda about, tensors: tensors.update(learner_state0=np.zeros((2, 2), np.uint8)),
        lambda about, tensors: [tensors.pop(name) for name in list(tensors) if name > "learner_"
                                and name.startswith("learner_")],
    ],
)  # fmt: skip
def test_a_description_that_does_not_match_the_state_is_refused(change: Any, path: Path) -> None:
    begun("FTRL", {}, TWO).model_.save(path, state=True)
    about, tensors = parts_of(path)
    change(about, tensors)
    save_file(tensors, path, {"thresher": json.dumps(about)})
    content = sealed_model(path.read_bytes(), state=False)
    assert content is not None
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged"):
        thresher.load(path)
