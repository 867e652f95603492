"""What a source says about its rows passes through shuffled, scaled and cached ones."""

import numpy as np
import pandas as pd
import pytest

import thresher
from support.files import called
from thresher import FTRLClassifier, FTRLRegressor, scan
from thresher.data.fold_source import FoldSource
from thresher.data.scaled import ScaledSource
from thresher.data.shuffled import ShuffledSource

pytest.importorskip("pyarrow")


def frame(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    words = np.array(["x", "x|y", "y|z", ""], object)[rng.integers(0, 4, rows)]
    return pd.DataFrame({"tags": words, "a": rng.normal(size=rows), "b": rng.integers(1, 9, rows)})


@pytest.fixture
def tags(tmp_path):
    path = tmp_path / "tags.csv"
    frame().to_csv(path, index=False)
    return path


def found(source) -> set[str]:
    return {str(word) for block in source.blocks() for word in block.label_sets()[1]}


@pytest.mark.parametrize("how", ["plain", "shuffled", "scaled", "both", "fold", "scaled fold"])
def test_lists_of_words(tags, how):
    source = scan(tags, multilabel=True, label="tags")
    if "shuffled" in how or how == "both":
        source = ShuffledSource(source, 0)
    if "scaled" in how or how == "both":
        source = ScaledSource(source, "variance")
    if "fold" in how:
        source = FoldSource(source, 0, 2)
    assert found(source) == {"x", "y", "z"}


def test_a_shuffled_cache_keeps_words(tags, tmp_path):
    options = ("--multilabel", "--label", "tags", "--cache", tmp_path / "cache", "--shuffle")
    for name in ("first", "again"):
        called("train", tags, *options, "-m", tmp_path / name, "--quiet")
    first, again = (thresher.load(tmp_path / name) for name in ("first", "again"))
    assert first.classes.tolist() == again.classes.tolist() == ["x", "y", "z"]
    assert first.weights.tobytes() == again.weights.tobytes()


def test_frames_keep_the_separator():
    rows = frame()
    for given in ("|", None):
        source = scan(rows, multilabel=True, label="tags", label_separator=given)
        assert found(source) == {"x", "y", "z"}
    model = FTRLClassifier(random_state=0).fit(scan(rows, multilabel=True, label="tags"))
    again = model.partial_fit(scan(rows, multilabel=True, label="tags"))
    assert again.classes_.tolist() == ["x", "y", "z"]
    slashes = rows.assign(tags=rows.tags.str.replace("|", "/"))
    source = scan(slashes, multilabel=True, label="tags", label_separator="/")
    assert found(source) == {"x", "y", "z"}


def test_a_model_of_a_frame_scores_a_file(tmp_path):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"c": rng.choice(["red", "blue"], 200), "x": rng.normal(size=200)})
    rows["y"] = (rows.c == "red").astype(int)
    rows.to_csv(tmp_path / "a.csv", index=False)
    model = FTRLClassifier(random_state=0).fit(rows, label="y")
    assert model.score(scan(tmp_path / "a.csv")) == 1.0
    numbers = FTRLRegressor(random_state=0).fit(rows, label="y")
    assert numbers.score(scan(tmp_path / "a.csv")) > 0.9


def test_a_model_without_weights_predicts_its_frame():
    rows = pd.DataFrame({"x": [1.0, 2.0] * 20, "z": [0.0, 1.0] * 20, "y": [1.0, 2.0] * 20})
    with pytest.warns(UserWarning, match="all weights are zero"):
        model = FTRLRegressor(l1=1e9, random_state=0).fit(rows, label="y").model_
    assert model.nnz == 0
    assert len(model.predict(rows)) == 40


@pytest.mark.parametrize(
    ("more", "said"),
    [(["--missing", "indicator"], "--missing was None"), (["--shuffle"], "--shuffle was 'blocks'")],
)
def test_a_resumed_run_needs_the_same_reading(tmp_path, more, said):
    path = tmp_path / "rows.csv"
    path.write_text("y,a,b\n" + "1,2,\n0,,3\n" * 200)
    shuffle = ["--shuffle-blocks"] if "--shuffle" in more else ["--shuffle"]
    common = ["train", path, "--rule", "ftrl", "-m", tmp_path / "m", "--checkpoint", tmp_path / "c"]
    called(*common, *shuffle, "--passes", "2", "--every", "0s", "--keep-checkpoint", "--quiet")
    resumed = [*common, "--resume", "--passes", "2", *more]
    resumed += [] if "--shuffle" in more else shuffle
    assert said in called(*resumed, code=1).stderr
