"""Sources with scaled columns: scales, rows, and models whose weights are for rows as they are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import thresher
from support.files import pipe, svmlight, vw
from thresher import scan
from thresher.data import column_scales, scaled
from thresher.data.matrix_source import MatrixSource
from thresher.errors import DataError, ModelFileError, ParameterError, ReadOnceError
from thresher.estimators import estimator_class
from thresher.preprocessing import UnitVarianceScaler
from thresher.rules import RULES
from thresher.stability import StreamingStabilitySelection
from thresher.training.observer import Interrupted

RNG = np.random.default_rng(3)
SIZES = np.array([1.0, 1e3, 1e-3, 5.0, 1e5, 1.0])
X = RNG.normal(size=(400, 6)) * SIZES * (RNG.random((400, 6)) < 0.7)
SCORE = X / SIZES @ [1.0, -1.0, 1.0, 0.0, 2.0, 0.0] + 0.2 * RNG.normal(size=400)
Y = (SCORE > 0).astype(float)
STREAMING = sorted(n for n, rule in RULES.items() if rule.streams and "classifier" in rule.tasks)


def rows(y=Y, x=X, size=64, scale="variance"):
    """Return a source of several blocks that can be read again."""
    return scan(
        lambda: ((x[i : i + size], y[i : i + size]) for i in range(0, len(y), size)), scale=scale
    )


def standard_rows(x):
    """Return rows whose dense columns are standardised, and the means and scales."""
    half = 2 * (x != 0).sum(axis=0) >= len(x)
    mean = np.where(half, x.mean(axis=0), 0.0)
    scale = np.where(half, x.std(axis=0), UnitVarianceScaler().fit(x).scale_)
    return (x - mean) / scale, mean, scale


def scaled_rows(x=X, how="variance"):
    by = UnitVarianceScaler().fit(x).scale_ if how == "variance" else np.abs(x).max(axis=0)
    return x / by, by


@pytest.mark.parametrize("how", ["variance", "max"])
@pytest.mark.parametrize("dense", [1 << 22, 2, 0])
def test_scales_are_those_of_the_scaler(how, dense, monkeypatch):
    monkeypatch.setattr(column_scales, "_DENSE", dense)
    monkeypatch.setattr(column_scales, "_NEW", 100)
    found = rows(scale=how).scales
    np.testing.assert_allclose(found.of(np.arange(6)), scaled_rows(how=how)[1], rtol=1e-12)
    assert found.of(np.array([6, 10**12])).tolist() == [1.0, 1.0]


def test_scales_of_rare_huge_and_tiny_columns():
    x = np.zeros((1000, 4))
    x[5, 0], x[:, 1], x[:, 2], x[::2, 3] = 3.0, 1e200, 1e-200, 1e-170
    found = rows(np.ones(1000), x).scales.of(np.arange(4))
    assert found[0] == pytest.approx(3 * (20 / 999) ** 0.5)
    np.testing.assert_allclose(found[1:3], [1e200, 1e-200], rtol=1e-3)
    assert 0 < found[3] < 2e-170


@pytest.mark.parametrize("dense", [1 << 22, 0])
@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_standard_centres_columns_without_many_zeros(dense, form, monkeypatch):
    monkeypatch.setattr(column_scales, "_DENSE", dense)
    monkeypatch.setattr(column_scales, "_NEW", 100)
    x = (X + np.array([5.0, 1e9, 0, 100, 2e5, 3])) * (
        RNG.random(X.shape) < [1, 1, 1, 0.8, 0.6, 0.1]
    )
    x = np.column_stack([x, np.ones(400)])  # a constant is not centred
    wanted, mean, scale = standard_rows(x[:, :6])
    made = rows(x=sp.csr_matrix(x) if form == "sparse" else x, scale="standard")
    np.testing.assert_allclose(made.scales.of(np.arange(6)), scale, rtol=1e-6)
    np.testing.assert_allclose(made.scales.centres_of(np.arange(6)), mean, rtol=1e-9, atol=1e-9)
    assert made.scales.centres_of(np.array([6])) == [0.0]
    found = made.gather()
    again = np.zeros(x.shape)
    again[np.repeat(np.arange(400), np.diff(found.starts)), found.keys.astype(int)] = found.values
    np.testing.assert_allclose(again[:, :6], wanted, rtol=1e-5, atol=1e-5)
    for intercept in (True, False):
        clf = thresher.FTRLClassifier(
            passes=3, shuffle=False, random_state=0, dtype="float64", fit_intercept=intercept
        )
        expected = clf.fit(rows(x=again, scale=None)).decision_function(again)
        np.testing.assert_allclose(clf.fit(made).decision_function(x), expected, rtol=1e-4)
    for other in (x, sp.csr_matrix(x)):
        like = made.like(MatrixSource(other, Y)).block.X
        like = like.toarray() if sp.issparse(like) else like
        np.testing.assert_allclose(like, again, rtol=1e-5, atol=1e-5)


def test_rows_are_scaled_and_everything_else_stays(tmp_path):
    for path in (svmlight(tmp_path / "rows.svm", rows=3000), vw(tmp_path / "rows.vw")):
        plain, made = scan(path), scan(path, scale="variance")
        names = {"names": "blocks"} if plain.named else {}
        for a, b in zip(plain.blocks(**names), made.blocks(**names), strict=True):
            by = made.scales.of(np.asarray(a.native.keys))
            np.testing.assert_allclose(b.native.values, np.asarray(a.native.values) / by)
            np.testing.assert_array_equal(a.native.keys, b.native.keys)
            np.testing.assert_array_equal(a.labels, b.labels)
            assert (a.place(7), a.label_place(7)) == (b.place(7), b.label_place(7))
            assert (a.digest, a.raw, a.end, a.width) == (b.digest, b.raw, b.end, b.width)
            assert (a.tags, sorted(a.names)) == (b.tags, sorted(b.names))
        assert made.described() == plain.described()
        assert made.width() == plain.width()


@pytest.mark.parametrize("rule", STREAMING)
def test_a_fit_equals_one_to_scaled_rows(rule):
    """The weights are those of a fit to scaled rows, divided by the scales."""
    made, (x, by) = estimator_class(rule, "classifier"), scaled_rows()
    params = {"passes": 3, "dtype": "float64", "random_state": 0, "shuffle": False}
    params = {name: value for name, value in params.items() if name in made().get_params()}
    expected = made(**params).fit(rows(Y, x, scale=None))
    found = made(**params).fit(rows())
    np.testing.assert_allclose(found.coef_ * by, expected.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(x), rtol=1e-6)
    np.testing.assert_allclose(found.decision_function(rows()), found.decision_function(X))
    assert found.score(rows()) == found.score(rows(scale=None)) == found.score(X, Y)


@pytest.mark.parametrize("name", ["StabilizedClassifier", "CoordinateDescentRegressor"])
def test_rules_that_need_all_rows(name):
    x, by = scaled_rows()
    y = Y if name.endswith("Classifier") else SCORE
    model = getattr(thresher, name)(random_state=0, passes=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model.fit(x, y, eval_set=(x, y))
        coef, loss = expected.coef_, expected.history_[-1].valid_loss
        found = model.fit(rows(y), eval_set=(X, y))
    np.testing.assert_allclose(found.coef_ * by, coef, rtol=1e-9)
    assert found.history_[-1].valid_loss == pytest.approx(loss)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit(rows(y), eval_set=rows(y, scale=None))
    assert found.history_[-1].valid_loss == pytest.approx(loss)


def test_validation_rows_get_the_scales_of_the_training_rows():
    x, by = scaled_rows()
    other = RNG.normal(size=(50, 6)) * SIZES
    y = (other[:, 0] > 0).astype(float)
    params = {"passes": 2, "shuffle": False, "random_state": 0, "dtype": "float64"}
    expected = thresher.FTRLClassifier(**params).fit(
        rows(Y, x, scale=None), eval_set=(other / by, y)
    )
    for given in ((other, y), (sp.csr_matrix(other), y), rows(y, other, scale=None)):
        found = thresher.FTRLClassifier(**params).fit(rows(), eval_set=given)
        assert found.history_[-1].valid_loss == pytest.approx(expected.history_[-1].valid_loss)


def test_hashed_features_target_nnz_and_regression(tmp_path):
    path = vw(tmp_path / "rows.vw")
    clf = thresher.FTRLClassifier(store="hashed", passes=2, target_nnz=5, random_state=0)
    clf.fit(scan(path, scale="max"))
    assert 0 < clf.model_.nnz <= 5
    assert all(str(feature.name).startswith(("word^", "age^")) for feature in clf.model_.top(5))
    assert clf.score(scan(path)) > 0.6
    reg = thresher.FTRLRegressor(passes=10, random_state=0).fit(rows(SCORE))
    hand = make_pipeline(UnitVarianceScaler(), thresher.FTRLRegressor(passes=10, random_state=0))
    assert reg.score(X, SCORE) == pytest.approx(hand.fit(X, SCORE).score(X, SCORE), abs=0.02)


def test_searches():
    ftrl = thresher.FTRLClassifier(passes=2, shuffle=False, random_state=0)
    found = thresher.OnePassSearchCV(ftrl, {"l1": [0.01, 1.0]}, cv=3).fit(rows())
    assert found.score(rows(scale=None)) == found.best_estimator_.score(X, Y) > 0.85
    path = thresher.SparsityPath(ftrl, [0.01, 1.0], cv=3).fit(rows())
    assert path.best_estimator_.score(X, Y) > 0.85
    assert (path.errors_ < 0.15).all()
    selected = StreamingStabilitySelection(ftrl, pairs=4, permutations=0, random_state=0)
    assert selected.fit(rows(), classes=[0, 1]).n_pairs_ == 4


def test_a_race_learns_scaled_rows():
    clf = thresher.SparseClassifier(folds=2, budget=1.0, random_state=0).fit(rows())
    assert clf.score(X, Y) > 0.85


def test_what_cannot_be_scaled():
    with pytest.raises(ReadOnceError, match="scale reads the rows twice"):
        scaled.ScaledSource(pipe(X, Y), "variance")
    with pytest.raises(ParameterError, match="scale must be one of variance, max, standard"):
        rows(scale="unit-norm")
    clf = thresher.FTRLClassifier(passes=1)
    with pytest.raises(ParameterError, match="partial_fit sees each row once; use fit"):
        clf.partial_fit(rows(), classes=[0, 1])
    clf.fit(rows())
    with pytest.raises(ParameterError, match="trained with scaled columns, and its learners"):
        clf.partial_fit(X, Y)
    with pytest.raises(ParameterError, match="certify cannot be combined with scale="):
        thresher.TruncatedGradientClassifier(certify=True).fit(rows())
    with pytest.raises(ParameterError, match="compare has its own parameter"):
        thresher.compare(rows())
    with pytest.raises(ParameterError, match="does not depend on the scale"):
        thresher.FeatureDiscovery().fit(rows())
    bad = X.copy()
    bad[100, 2] = np.nan
    with pytest.raises(DataError):
        clf.fit(rows(x=bad))


class Stops(thresher.Observer):
    """Stops after some blocks."""

    def __init__(self, blocks):
        self.left = blocks

    def progress(self, trainer):
        self.left -= 1

    def stops(self):
        return self.left <= 0


@pytest.mark.parametrize("rule", ["ftrl", "stabilized"])
def test_a_resumed_run_is_exact(rule, tmp_path):
    path = svmlight(tmp_path / "rows.svm", rows=3000)
    cls = estimator_class(rule, "classifier")
    clf = cls(passes=4, random_state=0)
    whole = clf.fit(scan(path, scale="variance")).model_
    checkpoint = tmp_path / "c"
    stopping = Stops(2 if rule == "ftrl" else 0)
    with pytest.raises(Interrupted):
        clf.fit(scan(path, scale="variance"), checkpoint=checkpoint, observer=stopping)
    with pytest.raises(ModelFileError, match=r"scale was 'variance'|rows are not those"):
        clf.fit(scan(path), checkpoint=checkpoint, resume=True)
    again = clf.fit(scan(path, scale="variance"), checkpoint=checkpoint, resume=True).model_
    np.testing.assert_array_equal(again.weights, whole.weights)
    np.testing.assert_array_equal(again.indices, whole.indices)


def test_a_plain_checkpoint_cannot_be_resumed_with_scaled_columns(tmp_path):
    path, checkpoint = svmlight(tmp_path / "rows.svm", rows=3000), tmp_path / "c"
    clf = thresher.FTRLClassifier(passes=4, random_state=0)
    with pytest.raises(Interrupted):
        clf.fit(scan(path), checkpoint=checkpoint, observer=Stops(2))
    with pytest.raises(ModelFileError, match="scale was None in the run that wrote it"):
        clf.fit(scan(path, scale="max"), checkpoint=checkpoint, resume=True)
