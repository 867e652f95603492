"""Bad input of FeatureDiscovery: answers or clear errors, and nothing changes if fit fails."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from support.discovery_cases import discovered, same_results, signal
from support.files import pipe, svmlight
from thresher import DataError, ParameterError
from thresher.discovery import DiscoveryWarning

X, Y = signal(rows=300)
FORMS = ["crossfit", "stream", "joint"]
forms = pytest.mark.parametrize("form", FORMS)
pytestmark = pytest.mark.filterwarnings("ignore::thresher.discovery.DiscoveryWarning")


def refused(match: str, *data: Any, kind: type[Exception] = ValueError, **options: Any) -> None:
    """Expect an error from a new estimator, and from a fitted one that must not change."""
    fit = options.pop("fit", {})
    fitted = discovered().fit(X, Y)
    params = fitted.get_params()
    fitted.set_params(**options)
    before = dict(fitted.__dict__)
    for made in (discovered(**options), fitted):
        with pytest.raises(kind, match=match):
            made.fit(*data, **fit)
    assert fitted.__dict__ == before
    fitted.set_params(**params)
    same_results(fitted, discovered().fit(X, Y))


# ---- rows that have an answer --------------------------------------------------------------------


@forms
@pytest.mark.parametrize("rows", [2, 3, 10, 49])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_few_rows(form: str, rows: int, kind: str) -> None:
    few, y = X[:rows], np.arange(rows) % 2 + (0.5 * Y[:rows] if kind == "regression" else 0)
    with pytest.warns(DiscoveryWarning, match=f"number of rows: {rows} rows"):
        found = discovered(form=form, task=kind, refit=True).fit(few, y)
    assert np.isfinite(found.z_).all()
    assert found.predict(few).shape == (rows,)


@forms
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_columns_without_information(form: str, task: str) -> None:
    nothing = discovered(form=form, task=task, refit=True).fit(np.zeros((300, 4)), Y)
    assert nothing.selected_.tolist() == nothing.features_.tolist() == []
    assert (nothing.z_ == 0).all()
    assert (nothing.qvalues_ == 1).all()
    assert nothing.expected_false_ == 0
    assert nothing.findings() == nothing.findings(9) == []
    assert len(np.unique(nothing.predict(np.ones((5, 4))))) == 1
    constant = discovered(form=form, task=task).fit(np.ones((300, 4)), Y)
    assert constant.selected_.tolist() == []
    single = discovered(form=form, task=task).fit(X[:, [3]], Y)
    assert single.z_.shape == (1,)


@forms
def test_constant_targets_of_a_regression(form: str) -> None:
    for target in (0.0, 7.0, 1e50):
        found = discovered(form=form, task="regression").fit(X, np.full(300, target))
        assert found.selected_.tolist() == []
        assert (found.z_ == 0).all()


@forms
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_units_of_columns(form: str, dtype: str) -> None:
    plain = discovered(form=form, dtype=dtype).fit(X, Y)
    for unit in (1e-10, 1e10):
        found = discovered(form=form, dtype=dtype).fit(X * unit, Y)
        np.testing.assert_array_equal(found.selected_, plain.selected_)
        np.testing.assert_allclose(found.z_, plain.z_, atol=1e-2)
    tiny = discovered(form=form, dtype=dtype).fit(X * 1e-200, Y)
    assert np.isfinite(tiny.z_).all()


@forms
def test_large_targets(form: str) -> None:
    x, y = signal("regression", rows=300)
    far = discovered(form=form, dtype="float64").fit(x, y * 1e90)
    np.testing.assert_allclose(
        far.z_, discovered(form=form, dtype="float64").fit(x, y).z_, atol=0.1
    )
    outlier = y.copy()
    outlier[17] = 1e99
    assert np.isfinite(discovered(form=form).fit(x, outlier).z_).all()
    refused("row .*: the target is larger than 1e100", x, y * 1e101, kind=DataError, form=form)


def test_repeated_rows() -> None:
    found = discovered().fit(np.repeat(X[:3], 100, axis=0), np.repeat([0, 1, 1], 100))
    check = {each.name: each for each in found.checks_}["repeated rows"]
    assert check.value == pytest.approx(0.99)
    assert not check.fine


def test_other_types_of_rows_and_labels() -> None:
    plain = discovered().fit(X, Y)
    same_results(discovered().fit(X.tolist(), Y.tolist()), plain)
    for labels in (
        Y.astype(bool),
        np.array(["no", "yes"])[Y],
        np.array(["a", "b"], object)[Y],
        2 - Y,
    ):
        found = discovered().fit(X, labels)
        assert found.classes_.tolist() == np.unique(labels).tolist()
        np.testing.assert_allclose(np.abs(found.z_), np.abs(plain.z_), rtol=0.2, atol=0.7)
    whole = (X * 3).astype(int)
    same_results(discovered().fit(whole, Y), discovered().fit(whole.astype(float), Y))


# ---- rows that are refused -----------------------------------------------------------------------


@forms
def test_rows_of_one_class(tmp_path: Path, form: str) -> None:
    refused("at least 2 classes; found", X, np.ones(300), kind=DataError, form=form)
    path = tmp_path / "rows.svm"
    for label in (1, -1, 0, 5):
        path.write_text(f"{label} 1:2 2:3\n{label} 1:1\n" * 40)
        refused("at least 2 classes; found", thresher.scan(path), kind=DataError, form=form)
    weights = (Y == 1).astype(float)
    refused("at least 2 classes; found", X, Y, weights, kind=DataError, form=form)
    with pytest.raises(DataError, match="at least 2 classes"):
        discovered().fit(pipe(X, np.ones(300)))
    once = discovered().partial_fit(X, np.ones(300), classes=[0, 1])  # others may follow
    assert once.n_rows_ == 300


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "NaN"), (np.inf, "infinity"), (1e200, "feature 4 is")]
)
@forms
def test_bad_values(value: float, message: str, form: str) -> None:
    bad = X.copy()
    bad[100, 4] = value
    refused(message, bad, Y, form=form)
    refused(message, sp.csr_matrix(bad), Y, form=form)
    target = Y + 0.5
    target[7] = value
    if not np.isfinite(value):
        refused(message, X, target, form=form, task="regression")


def test_values_that_are_too_large_for_single_precision() -> None:
    bad = X.copy()
    bad[100, 4] = 1e17
    refused("row 100: its values are too large for feature discovery", bad, Y, kind=DataError)
    assert discovered(dtype="float64").fit(bad, Y).n_rows_ == 300


def test_a_failed_partial_fit_changes_nothing() -> None:
    found, same = discovered().partial_fit(X, Y), discovered().partial_fit(X, Y)
    bad = X.copy()
    bad[100, 4] = 1e17
    for wrong in (bad, sp.csr_matrix(bad)):
        with pytest.raises(DataError, match="row 100: its values are too large"):
            found.partial_fit(wrong, Y)
    with pytest.raises(DataError, match="not among the classes"):
        found.partial_fit(X, Y + 1)
    with pytest.raises(ValueError, match="39 features"):
        found.partial_fit(X[:, 1:], Y)
    same_results(found.partial_fit(X, Y), same.partial_fit(X, Y))


def test_wrong_shapes() -> None:
    refused("inconsistent numbers of samples", X, Y[:5])
    refused("1d array", X, np.c_[Y, Y])
    refused("requires y", X)
    refused("0 feature", X[:, []], Y)
    refused("minimum of 2 is required", X[:1], Y[:1])
    refused("Unknown label type", X, np.array([1, "a", None] * 100, object))
    refused("Sparse data was passed for y", X, sp.csr_matrix(Y[:, None]), kind=TypeError)


def test_weights_that_are_refused() -> None:
    refused("Negative values", X, Y, -np.ones(300))
    refused("sample_weight", X, Y, np.ones(5))
    refused("NaN", X, Y, np.full(300, np.nan))
    refused("at least one non-zero", X, Y, np.zeros(300))


def test_groups_that_are_refused() -> None:
    groups = np.arange(300) // 3
    for wrong, message, options in (
        (groups[:5], "one entry for each row", {}),
        (groups % 2, "at least 5 different groups", {}),
        (groups, "form='stream' has none", {"form": "stream"}),
        (groups, "folds must be", {"folds": "five"}),
    ):
        refused(message, X, Y, fit={"groups": wrong}, kind=ParameterError, **options)


def test_sources_that_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.svm"
    empty.write_text("")
    refused("no rows to learn from", thresher.scan(empty), kind=DataError)
    refused("no rows to learn from", thresher.scan(empty), kind=DataError, task="regression")
    path = svmlight(tmp_path / "rows.svm")
    for more in ((Y,), (None, np.ones(300))):
        refused("own labels and weights", thresher.scan(path), *more, kind=ParameterError)
    refused("one label each", thresher.scan(path, multilabel=True), kind=ParameterError)
    path.write_text(path.read_text() + "1 7:nan\n")
    refused("rows.svm:401", thresher.scan(path), kind=DataError)
    path.write_text("1 1:1\ncat 1:1\n")
    refused("rows.svm:2", thresher.scan(path), kind=DataError)
    with pytest.raises(DataError, match="no rows to learn from"):
        discovered().fit(thresher.scan(iter([])))
    with pytest.raises(ValueError, match=r"classes=.*task='regression' for numbers"):
        discovered().fit(pipe(X, Y + 0.5))
    with pytest.raises(ParameterError, match="partial_fit takes rows"):
        discovered().partial_fit(thresher.scan(path), None)
    with pytest.raises(AttributeError, match="partial_fit"):
        discovered(form="crossfit").partial_fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "paper"}, "form must be auto, crossfit, stream, joint; got 'paper'"),
        ({"form": None}, "form must be"),
        ({"task": "ranking"}, "task must be"),
        ({"dtype": "float16"}, "dtype must be"),
        *(
            ({"fdr": value}, "fdr must be a number above 0")
            for value in (0, -1, 2, "a", np.nan, None)
        ),
        *(({"expected_false": value}, "expected_false must be") for value in (0, -1, "a", np.nan)),
        *(({"folds": value}, "folds must be") for value in (1, 0, 65, 2.5, "a", True)),
        *(({"redraws": value}, "redraws must be") for value in (1, 0, 1001, 2.5, "a", None)),
        *(({"n_jobs": value}, "n_jobs must be") for value in (0, "a", 1.5)),
        *(({"memory_limit": value}, "memory_limit must be") for value in (0, -1, "a")),
        ({"random_state": "luck"}, "random_state"),
        ({"feature_groups": "column"}, "feature_groups must be an array"),
        ({"feature_groups": "namespace"}, "needs a source whose features have names"),
        ({"feature_groups": [1, 2]}, "the group of each of the 40 columns"),
        ({"feature_groups": np.zeros((40, 2))}, "the group of each of the 40 columns"),
        ({"feature_groups": np.arange(40), "redraws": 2}, "redraws must be at least 3"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    refused(message, X, Y, kind=ParameterError, **options)


def test_questions_that_are_refused() -> None:
    found = discovered().fit(X, Y)
    for feature, message in (
        ("cat", "no feature is called 'cat'"),
        (40, "there is no feature 40; features are 0 to 39"),
        (-1, "there is no feature -1"),
    ):
        with pytest.raises(ParameterError, match=message):
            found.why(feature)
    with pytest.raises(ValueError, match="39 features"):
        found.transform(X[:, 1:])
    new = discovered()
    for call in (lambda: new.transform(X), lambda: new.selected_, lambda: new.why(3)):
        with pytest.raises(Exception, match=r"not fitted|no attribute"):
            call()


@pytest.mark.parametrize("form", ["crossfit", "stream"])
def test_no_warnings_from_numpy(form: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for rows, y in ((X, Y), (X[:3], [0, 1, 0]), (np.zeros((9, 2)), [0, 1, 0] * 3)):
            discovered(form=form, feature_groups=np.zeros(rows.shape[1])).fit(rows, y)
            discovered(form=form, task="regression", refit=True).fit(rows, y)
