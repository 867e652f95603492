"""What `thresher.evaluate` takes, and what it refuses."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import thresher
from support.score_models import identity_model
from thresher import FTRLClassifier, FTRLRegressor
from thresher.data.unseen_labels import UnseenLabelWarning
from thresher.errors import DataError, ParameterError
from thresher.evaluation import rows as rows_of_evaluation

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))
Y = (X[:, 0] + RNG.normal(size=300) > 0).astype(int)
WEIGHTS = RNG.integers(1, 4, 300).astype(float)


def values(found):
    return {name: found[name] for name in found}


def test_models_are_objects_files_estimators_and_pipelines(tmp_path):
    made = FTRLClassifier().fit(X, Y)
    made.model_.save(tmp_path / "a.thresher")
    wanted = values(thresher.evaluate(made, X, Y, replicates=0))
    for model in (made.model_, tmp_path / "a.thresher", str(tmp_path / "a.thresher")):
        assert values(thresher.evaluate(model, X, Y, replicates=0)) == wanted
    pipe = make_pipeline(StandardScaler(), FTRLClassifier()).fit(X, Y)
    found = thresher.evaluate(pipe, X, Y, replicates=0)
    assert found["accuracy"] == pipe.score(X, Y)
    assert values(thresher.evaluate(make_pipeline(made), X, Y, replicates=0)) == wanted
    with pytest.raises(ParameterError, match="must be a Model, the path of one, or a fitted"):
        thresher.evaluate(FTRLClassifier(), X, Y)


def test_rows_are_matrices_frames_dicts_and_sources(tmp_path):
    names = [f"x{j}" for j in range(6)]
    frame = pd.DataFrame(X, columns=names)
    made = FTRLClassifier().fit(frame, Y)
    wanted = values(thresher.evaluate(made, X, Y, WEIGHTS, replicates=0))
    dicts = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    for rows in (csr_array(X), frame, dicts):
        found = thresher.evaluate(made, rows, Y, WEIGHTS, replicates=0)
        assert values(found) == pytest.approx(wanted)
    source = thresher.scan((frame, Y, WEIGHTS))
    with pytest.warns(UserWarning, match="no row has a feature with nonzero weight"):
        found = thresher.evaluate(made, source, replicates=0)  # it knows numbers, not names
    assert any("nonzero weight" in remark for remark in found.remarks)
    named = FTRLClassifier(store="hashed", passes=1).fit(thresher.scan((frame, Y)))
    found = thresher.evaluate(named, source, replicates=0)
    right = named.predict(source) == Y
    assert found["accuracy"] == pytest.approx(WEIGHTS[right].sum() / WEIGHTS.sum())
    path = tmp_path / "rows.csv"
    frame.assign(label=Y, w=WEIGHTS).to_csv(path, index=False)
    read = thresher.scan(path, weight="w")
    found = thresher.evaluate(FTRLClassifier(store="hashed", passes=1).fit(read), read)
    assert found.weight == WEIGHTS.sum()
    assert found.rows == 300


def test_labels_of_zero_and_minus_one_are_the_same_class():
    model = identity_model(1, [-1, 1])
    wanted = values(thresher.evaluate(model, X[:, :1], np.where(Y, 1, -1), replicates=0))
    assert values(thresher.evaluate(model, X[:, :1], Y, replicates=0)) == wanted
    as_objects = thresher.evaluate(model, X[:, :1], Y.astype(object), replicates=0)
    assert values(as_objects) == wanted


def test_labels_that_the_model_does_not_know_are_counted():
    model = identity_model(3, ["a", "b", "c"])
    labels = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)].astype(object)
    labels[:30] = "z"
    with pytest.warns(UnseenLabelWarning, match="30 of 300 rows have a label .* z \\(30\\)"):
        found = thresher.evaluate(model, X[:, :3], labels, replicates=0)
    assert found["accuracy"] == 0.9
    assert found["balanced_accuracy"] == 1.0
    assert found.unknown_labels == 30
    assert "z (30)" in found.table()
    with pytest.raises(DataError, match="the labels are 'z'; the model knows 'a', 'b', 'c'"):
        thresher.evaluate(model, X[:, :3], ["z"] * 300)


def test_labels_of_sets_that_the_model_does_not_know_are_missed(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("3,5 1:1 2:1\n3,99 1:1 2:-1\n")
    model = identity_model(2, [3, 5], multilabel=True, zero_based=False)
    with pytest.warns(UnseenLabelWarning, match="1 of 2 rows has a label .* 99"):
        found = thresher.evaluate(model, thresher.scan(path, multilabel=True), replicates=0)
    assert found["recall_micro"] == 0.75
    assert found["accuracy"] == 0.5
    assert found["precision_at_1"] == 1.0


def test_slices_of_rows_in_memory_have_the_same_result(monkeypatch):
    model, y = identity_model(3, [0, 1, 2]), np.arange(300) % 3
    X = np.random.default_rng(0).normal(size=(300, 3))
    whole = thresher.evaluate(model, X, y, replicates=3)
    monkeypatch.setattr(rows_of_evaluation, "_SCORES", 210)  # 70 rows of 3 scores
    sizes = []
    found = thresher.evaluate(model, X, y, replicates=3, on_progress=lambda n, _: sizes.append(n))
    assert sizes == [70, 140, 210, 280, 300]
    wanted = {name: whole[name] for name in whole}
    assert {name: found[name] for name in found} == pytest.approx(wanted, rel=1e-12)


def test_labels_whose_squares_are_too_large():
    X = np.array([[1.0], [2.0], [3.0]])
    found = thresher.evaluate(identity_model(1, None, "squared"), X, X[:, 0] * 1e200, replicates=2)
    assert found["mae"] == pytest.approx(2e200)
    for name in ("r2", "rmse"):
        assert found[name] is None
        assert "squares of labels or errors are too large" in found.metrics[name].reason
    with pytest.raises(DataError, match="the label is 'a'; a number was expected"):
        thresher.evaluate(identity_model(1, None, "squared"), X, np.array(["a"] * 3))


def test_rows_without_labels_have_no_gain():
    model = identity_model(3, [0, 1, 2], multilabel=True)
    Z = np.zeros((4, 3), int)
    Z[0, 1] = 1
    found = thresher.evaluate(model, [[0.0, 1, -1]] * 4, Z, replicates=0, at=(1,))
    assert found["ndcg_at_1"] == 1.0
    assert found["precision_at_1"] == 0.25
    assert any("rows of weight 3 have no label" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": None}, "rows in memory need labels"),
        ({"y": Y[:-1]}, "y must have 300 labels, one for each row of X; got 299"),
        ({"y": np.eye(300)}, "y must be one label per row"),
        ({"sample_weight": WEIGHTS[:-1]}, "sample_weight must be 300 finite numbers >= 0"),
        ({"sample_weight": -WEIGHTS}, "finite numbers >= 0"),
        ({"sample_weight": WEIGHTS * 0}, "the weights of all rows are 0"),
        ({"y": np.where(np.arange(300) == 7, np.nan, Y)}, "row 7: the row has no label"),
        (
            {"X": np.where(np.arange(300)[:, None] == 5, np.inf, X)},
            "row 5: the value of feature 0 is inf",
        ),
        ({"X": X[:0], "y": Y[:0]}, "there are no rows"),
        ({"X": X[:, :3]}, "X must have 6 columns"),
        ({"replicates": -1}, "replicates must be 0, or from 2 to 10000; got -1"),
        ({"level": 1}, "level must be between 0 and 1; got 1"),
        ({"shares": (0.1, 0)}, "shares must be above 0 and at most 1"),
        ({"at": (0,)}, "at must be whole numbers >= 1"),
        ({"quantile": 1.0}, "quantile must be between 0 and 1"),
        ({"exact": 0}, "exact must be at least 1"),
        ({"level": "high"}, "level must be a number; got 'high'"),
        ({"at": 3}, "at must be a list of numbers; got 3"),
        ({"shares": 0.1}, "shares must be a list of numbers; got 0.1"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
    ],
)
def test_refusals(given, message):
    made = FTRLClassifier().fit(X, Y)
    with pytest.raises((ParameterError, DataError, ValueError), match=message):
        thresher.evaluate(made, **{"X": X, "y": Y, **given})


def test_refusals_of_sources(tmp_path):
    made = FTRLClassifier().fit(X, Y)
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n0 2:1\n")
    with pytest.raises(ParameterError, match="y must be None with a source"):
        thresher.evaluate(made, thresher.scan(path), Y)
    path.write_text("3,4 1:1\n0 2:1\n")
    with pytest.raises(DataError, match=r"rows.svm:1.*lists of labels"):
        thresher.evaluate(made, thresher.scan(path, multilabel=True))
    words = tmp_path / "words.csv"
    words.write_text("a,label\n1,yes\n")
    regressor = FTRLRegressor().fit(X, X[:, 0])
    with pytest.raises(DataError, match="the label is 'yes'; a number was expected"):
        thresher.evaluate(regressor, thresher.scan(words))
    matrix = identity_model(2, [0, 1], multilabel=True)
    with pytest.raises(ParameterError, match="a matrix of 0 and 1 with 2 columns"):
        thresher.evaluate(matrix, X[:, :2], np.full((300, 2), 3))


def test_a_pipe_is_read_once():
    text = "".join(f"{y} 1:{x!r}\n" for x, y in zip(X[:, 0].tolist(), Y, strict=True))
    rows = (({"1": float(line.split(":")[1])}, int(line[0])) for line in io.StringIO(text))
    learned = thresher.scan(({"1": x}, int(y)) for x, y in zip(X[:, 0].tolist(), Y, strict=True))
    model = FTRLClassifier(store="hashed", passes=1).fit(learned, classes=[0, 1])
    seen = []
    found = thresher.evaluate(
        model, thresher.scan(rows), replicates=0, on_progress=lambda *at: seen.append(at)
    )
    assert found.rows == 300
    assert seen[-1][0] == 300


def test_results_are_json_text_and_pages(tmp_path):
    label = "<b>\x1b[31m"
    model = identity_model(1, ["a", label])
    labels = np.where(Y, label, "a")
    found = thresher.evaluate(model, X[:, :1], labels, replicates=5)
    assert "\x1b" not in str(found)
    assert "\\x1b[31m" in str(found)
    read = json.loads(found.to_json())
    assert read["accuracy"] == found["accuracy"]
    assert read["confusion_matrix"]["labels"] == ["a", label]
    assert set(read["intervals"]) == {name for name in found if found[name] is not None}
    assert "Evaluation: 300 rows, accuracy" in repr(found)
    found.report(tmp_path / "page.html", title="<i>")
    page = (tmp_path / "page.html").read_text()
    assert "<b>\\x1b" not in page
    assert "&lt;b&gt;\\x1b[31m" in page
    assert "&lt;i&gt;" in page
    assert "<script" not in found._repr_html_()
    with pytest.raises(KeyError):
        found["nothing"]
