"""Sources in place of X: a fit to text gives the model of a fit to a CSR matrix."""

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import svmlight
from support.source_cases import REGRESSORS, RULES, STORES, made, same


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def rows(folder):
    """A file, and its rows as a matrix."""
    path = svmlight(folder / "rows.svm", rows=300)
    X, y = load_svmlight_file(str(path))
    return path, X, y.astype(int)


@pytest.mark.parametrize(("store", "dtype"), STORES)
@pytest.mark.parametrize("rule", RULES)
def test_text_gives_the_model_of_csr(rows, rule, store, dtype):
    path, X, y = rows
    cls, params = RULES[rule]
    params = {**params, "store": store, "dtype": dtype}
    by_matrix = made(cls, params).fit(X, y)
    source = thresher.scan(path)
    by_text = made(cls, params).fit(source)
    same(by_text.model_, by_matrix.model_)
    assert by_text.n_features_in_ == by_matrix.n_features_in_ == X.shape[1]
    assert by_text.predict(thresher.scan(path)).tolist() == by_matrix.predict(X).tolist()
    # Rows of a source are always predicted in double precision.
    exact = 0 if dtype == "float64" else 1e-4
    decided = by_text.decision_function(source)
    np.testing.assert_allclose(decided, by_matrix.decision_function(X), rtol=0, atol=exact)
    if hasattr(by_text, "predict_proba"):
        shares = by_text.predict_proba(source)
        np.testing.assert_allclose(shares, by_matrix.predict_proba(X), rtol=0, atol=exact)
    assert [r.examples for r in by_text.history_] == [r.examples for r in by_matrix.history_]
    assert [r.loss for r in by_text.history_] == pytest.approx(
        [r.loss for r in by_matrix.history_], rel=1e-12
    )


@pytest.mark.parametrize("rule", ["truncated", "ftrl", "dual", "perceptron"])
def test_partial_fit_of_parts(rows, folder, rule):
    """Parts of the rows, one after another, as files or as matrices."""
    path, X, y = rows
    lines = path.read_text().splitlines(keepends=True)
    cls, params = RULES[rule]
    by_text, by_matrix = made(cls, params, store="hashed"), made(cls, params, store="hashed")
    for number, start in enumerate(range(0, 300, 100)):
        part = folder / f"part{number}.svm"
        part.write_text("".join(lines[start : start + 100]))
        by_text.partial_fit(thresher.scan(part), classes=[-1, 1])
        by_matrix.partial_fit(X[start : start + 100], y[start : start + 100], classes=[-1, 1])
    same(by_text.model_, by_matrix.model_)
    whole = made(cls, params, store="hashed").fit(thresher.scan(path))
    same(by_text.model_, whole.model_)


def test_sources_and_matrices_alternate(rows):
    path, X, y = rows
    turns = made(*RULES["truncated"]).partial_fit(X, y, classes=[-1, 1])
    turns.partial_fit(thresher.scan(path)).partial_fit(X, y)
    thrice = made(*RULES["truncated"])
    for _ in range(3):
        thrice.partial_fit(X, y, classes=[-1, 1])
    same(turns.model_, thrice.model_)


def test_passes(rows):
    path, X, y = rows
    params = {"gravity": 1e-3, "passes": 4}
    same(
        made(thresher.TruncatedGradientClassifier, params).fit(thresher.scan(path)).model_,
        made(thresher.TruncatedGradientClassifier, params).fit(X, y).model_,
    )


@pytest.mark.parametrize(("store", "dtype"), STORES)
def test_several_classes(folder, store, dtype):
    path = svmlight(folder / "classes.svm", rows=300, classes=(2, 5, 9))
    X, y = load_svmlight_file(str(path))
    params = {"gravity": 1e-3, "store": store, "dtype": dtype}
    by_text = made(thresher.TruncatedGradientClassifier, params).fit(thresher.scan(path))
    by_matrix = made(thresher.TruncatedGradientClassifier, params).fit(X, y.astype(int))
    same(by_text.model_, by_matrix.model_)
    assert by_text.classes_.tolist() == [2, 5, 9]
    np.testing.assert_allclose(
        by_text.predict_proba(thresher.scan(path)),
        by_matrix.predict_proba(X),
        rtol=0,
        atol=1e-12 if dtype == "float64" else 1e-6,
    )


@pytest.mark.parametrize(("cls", "params"), REGRESSORS)
@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_numbers(folder, cls, params, store):
    path = svmlight(folder / "numbers.svm", rows=300, classes=(0.25, 1.5, 2, 4))
    X, y = load_svmlight_file(str(path))
    by_text = made(cls, params, store=store).fit(thresher.scan(path))
    by_matrix = made(cls, params, store=store).fit(X, y)
    same(by_text.model_, by_matrix.model_)
    np.testing.assert_array_equal(by_text.predict(thresher.scan(path)), by_matrix.predict(X))
    more = made(cls, params, store=store).partial_fit(thresher.scan(path))
    same(more.model_, by_matrix.model_)


def test_importance_is_the_weight_of_a_row(rows, folder):
    path, X, y = rows
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(y))
    text = []
    for line, weight in zip(path.read_text().splitlines(), weights, strict=True):
        label, *pairs = line.split()
        moved = (pair.split(":") for pair in pairs)
        text.append(f"{label} {weight} | " + " ".join(f"{int(k) - 1}:{v}" for k, v in moved))
    weighted = folder / "weighted.vw"
    weighted.write_text("\n".join(text) + "\n")
    params = {"gravity": 1e-3, "store": "hashed"}
    by_text = made(thresher.TruncatedGradientClassifier, params).fit(thresher.scan(weighted))
    by_matrix = made(thresher.TruncatedGradientClassifier, params).fit(X, y, weights)
    same(by_text.model_, by_matrix.model_)


@pytest.mark.parametrize(
    "options",
    [
        *({name: value} for name in ("zero_based", "multilabel") for value in (None, 2, "no", 1.0)),
        *({name: value} for name in ("header", "quotes") for value in (2, "no")),
        *({"ngrams": value} for value in (None, "2", 2.0, True, 9)),
        {"label_separator": 3},
        *({"encoding": value} for value in ("hex", "zlib", "rot13", "undefined", 5)),
        *({"delimiter": value} for value in ("\0", 5, [";"])),
        {"columns": ["a", "b", "a"]},
    ],
    ids=str,
)
def test_options_that_a_model_file_may_not_say_are_refused(options, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    with pytest.raises(thresher.errors.ParameterError) as error:
        thresher.scan(tmp_path / "rows.svm", **options)
    assert next(iter(options)) in str(error.value)


def test_flags_of_reading_may_be_numbers(tmp_path):
    (tmp_path / "rows.svm").write_text("1 0:1\n")
    assert thresher.scan(tmp_path / "rows.svm", zero_based=1, header=None) is not None


def test_options_of_reading_may_be_those_of_numpy(tmp_path):
    (tmp_path / "rows.svm").write_text("1 0:1\n")
    options = {"zero_based": np.True_, "bits": np.int64(4), "ngrams": np.int32(2)}
    assert thresher.scan(tmp_path / "rows.svm", **options).reading.plain()["bits"] == 4
