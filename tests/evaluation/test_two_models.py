"""Two models on the same rows: paired replicates, McNemar and DeLong."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import thresher
from oracles import paired as oracle
from support.score_models import identity_model
from thresher.errors import DataError, ParameterError
from thresher.evaluation.paired import delong, mcnemar

SEEDS = st.integers(0, 2**20)
LOSSES_OF_LABELS = ("logistic", "clipped_square")  # with different targets of other classes


@given(SEEDS, st.booleans())
def test_delong(seed, ties):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(4, 40))
    positive = rng.random(rows) < 0.5
    assume(2 <= positive.sum() <= rows - 2)
    a, b = rng.normal(size=(2, rows)) + positive * rng.uniform(0, 2, (2, 1))
    if ties:
        a, b = a.round(), b.round()
    assert delong(a, b, positive) == pytest.approx(oracle.delong(a, b, positive), abs=1e-12)
    assert delong(a, a, positive) == (0.0, 0.0, 1.0)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar(only_first, only_second):
    wanted = oracle.mcnemar(only_first, only_second)
    assert mcnemar(only_first, only_second) == pytest.approx(wanted)


@pytest.mark.parametrize("counts", [(520, 481), (700, 600), (501, 500), (1500, 1500)])
def test_mcnemar_of_many_rows_is_near_to_the_exact_test(counts):
    assert mcnemar(*counts) == pytest.approx(oracle.mcnemar(*counts), abs=0.003)


def two(seed=0, rows=400):
    """Return two models that use different columns, and rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    y = (X[:, 0] + 0.6 * X[:, 1] + rng.normal(size=rows) > 0).astype(int)
    from thresher.model.history import Output
    from thresher.model.model import Model

    models = [
        Model.of([Output(np.array([k], np.uint64), np.ones(1), 0.0)], n_features=2,
                 classes=np.array([0, 1]), loss="logistic")
        for k in (0, 1)
    ]  # fmt: skip
    return *models, X, y


@given(SEEDS)
def test_differences_are_of_the_same_replicates(seed):
    first, second, X, y = two(seed)
    found = thresher.evaluate(first, X, y, against=second, replicates=20, seed=seed)
    alone = [thresher.evaluate(one, X, y, replicates=20, seed=seed) for one in (first, second)]
    for name, one in found.differences.items():
        mine, other = (each.metrics[name] for each in alone)
        assert one.value == mine.value - other.value
        np.testing.assert_array_equal(one.replicates, mine.replicates - other.replicates)
    right = [one.predict(X) == y for one in (first, second)]
    test = found.tests["mcnemar"]
    assert test["only_first"] == (right[0] & ~right[1]).sum()
    assert test["only_second"] == (right[1] & ~right[0]).sum()
    scores = [one.decision_function(X) for one in (first, second)]
    assert found.tests["delong"]["p_value"] == pytest.approx(
        oracle.delong(*scores, y == 1)[2], abs=1e-10
    )
    assert found.tests["delong"]["difference"] == pytest.approx(found["roc_auc"])


def test_tests_that_are_not_possible_say_why():
    first, second, X, y = two()
    weighted = thresher.evaluate(first, X, y, np.full(len(y), 2.0), against=second, replicates=0)
    assert all("weights" in test["undefined"] for test in weighted.tests.values())
    many = thresher.evaluate(first, X, y, against=second, replicates=0, exact=50)
    assert "too many rows" in many.tests["delong"]["undefined"]
    one = thresher.evaluate(first, X[:5], np.ones(5), against=second, replicates=0)
    assert one["roc_auc"] is None
    assert "two rows of each class" in one.tests["delong"]["undefined"]
    assert "no DeLong test" in one.table()
    ones = thresher.evaluate(first, X, y, np.ones(len(y)), against=second, replicates=0)
    assert ones.tests["delong"]["p_value"] < 1


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression"])
def test_losses_with_different_targets(task):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    if task == "binary":
        X, y = X[:, :1], (X[:, 0] > 0.2).astype(int)
        first, second = (identity_model(1, [0, 1], loss) for loss in LOSSES_OF_LABELS[::-1])
    elif task == "multiclass":
        y = X.argmax(axis=1)
        first, second = (identity_model(3, [0, 1, 2], loss) for loss in LOSSES_OF_LABELS)
    elif task == "multilabel":
        y = (X > 0.5).astype(int)
        first = identity_model(3, [0, 1, 2], multilabel=True)
        second = identity_model(3, [0, 1, 2], "clipped_square", multilabel=True)
    else:
        X, y = X[:, :1], X[:, 0]
        first, second = identity_model(1, None, "squared"), identity_model(1, None, "poisson")
        y = np.abs(y)
    found = thresher.evaluate(first, X, y, against=second, replicates=10)
    assert "first - second" in found.table()
    assert ("mcnemar" in found.tests) == (task != "regression")
    for one, own in zip((first, second), (found.first, found.second), strict=True):
        assert own["loss"] == pytest.approx(thresher.evaluate(one, X, y, replicates=0)["loss"])
    if task == "multilabel":
        right = [(one.predict(X) == y).all(axis=1) for one in (first, second)]
        assert found.tests["mcnemar"]["only_second"] == (right[1] & ~right[0]).sum()


def test_two_readings_of_the_same_rows(tmp_path):
    """Hashes with and without bits: the models read the file in different ways, block by block."""
    path = tmp_path / "rows.vw"
    rng = np.random.default_rng(0)
    lines = [f"{rng.choice([-1, 1])} |f a{rng.integers(9)} b{rng.integers(9)}" for _ in range(9000)]
    path.write_text("\n".join(lines) + "\n")
    sources = [thresher.scan(path, bits=bits) for bits in (None, 6)]
    stores = ("hashed", "dense")
    models = [
        thresher.FTRLClassifier(store=store, passes=1).fit(source)
        for store, source in zip(stores, sources, strict=True)
    ]
    found = thresher.evaluate(
        models[0], sources[0], against=models[1], against_X=sources[1], replicates=3
    )
    for one, model, source in zip((found.first, found.second), models, sources, strict=True):
        alone = thresher.evaluate(model, source, replicates=3)
        assert {name: one[name] for name in one} == {name: alone[name] for name in alone}
    other = tmp_path / "other.vw"
    other.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(DataError, match="different numbers of rows"):
        thresher.evaluate(models[0], sources[0], against=models[1],
                          against_X=thresher.scan(other, bits=6), replicates=0)  # fmt: skip
    swapped = [line.replace("-1 ", "1 ") for line in lines]
    other.write_text("\n".join(swapped) + "\n")
    with pytest.raises(DataError, match="different labels in rows 0 to"):
        thresher.evaluate(models[0], sources[0], against=models[1],
                          against_X=thresher.scan(other, bits=6), replicates=0)  # fmt: skip


def test_readings_with_other_numbers_or_weights_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{k % 7 + 1},{k % 3 + 2},{k % 5}" for k in range(90)]
    path.write_text("price,size,x\n" + "\n".join(lines) + "\n")
    readings = [{"label": "price", "ignore": "size"}, {"label": "size", "ignore": "price"},
                {"label": "price", "weight": "size"}]  # fmt: skip
    sources = [thresher.scan(path, **reading) for reading in readings]
    models = [thresher.OnePassRegressor(store="hashed").fit(source) for source in sources]
    for k, what in ((1, "labels"), (2, "weights")):
        with pytest.raises(DataError, match=f"different {what} in rows 0 to 89"):
            thresher.evaluate(models[0], sources[0], against=models[k], against_X=sources[k])


def test_models_that_cannot_be_compared():
    first, _, X, y = two()
    others = [identity_model(2, [0, 1, 2][:2], multilabel=True), identity_model(1, ["no", "yes"])]
    with pytest.raises(ParameterError, match="the first is binary, the second multilabel"):
        thresher.evaluate(first, X, y, against=others[0])
    with pytest.raises(ParameterError, match="different classes: only one has 0, 1, 'no', 'yes'"):
        thresher.evaluate(first, X, y, against=others[1])
