"""Estimators fitted to sources: names, pickles, held-out rows, certificates, warm starts."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import svmlight, vw
from support.source_cases import RULES, made, same


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def rows(folder):
    """A file, and its rows as a matrix."""
    path = svmlight(folder / "rows.svm", rows=300)
    X, y = load_svmlight_file(str(path))
    return path, X, y.astype(int)


@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_pickled(rows, folder, store):
    path, X, y = rows
    clf = made(*RULES["truncated"], store=store).fit(thresher.scan(path))
    copy = pickle.loads(pickle.dumps(clf))
    same(copy.model_, clf.model_)
    assert copy.predict(X).tolist() == clf.predict(X).tolist()
    for estimator in (clf, copy):
        estimator.partial_fit(thresher.scan(path)).partial_fit(X, y)
    same(copy.model_, clf.model_)
    wider = svmlight(folder / "wider.svm", features=200)
    for estimator in (clf, copy):
        estimator.partial_fit(thresher.scan(wider))
        assert estimator.n_features_in_ > 190
    same(copy.model_, clf.model_)
    named = made(thresher.FTRLClassifier, {"store": "hashed"})
    named.fit(thresher.scan(vw(folder / "pickled.vw", rows=200)))
    copy = pickle.loads(pickle.dumps(named))
    assert copy.model_.names == named.model_.names
    same(copy.model_, named.model_)


def test_names_of_features(folder):
    path = vw(folder / "names.vw", rows=400)
    clf = made(thresher.FTRLClassifier, {"l1": 1.0, "store": "hashed"}).fit(thresher.scan(path))
    names = set(clf.model_.names.values())
    assert "word^w2" in names
    assert names <= {f"word^w{k}" for k in range(40)} | {"age^years"}
    top = clf.model_.top(3)
    assert all(
        int(feature.name.removeprefix("word^w")) % 2 == (feature.weight < 0) for feature in top
    )
    assert clf.model_.why("word^w2").weight > 0


def test_bits_make_named_features_dense(folder):
    path = vw(folder / "folded.vw", rows=400)
    clf = made(thresher.FTRLClassifier, {"l1": 1.0}).fit(thresher.scan(path, bits=12))
    assert clf.n_features_in_ == 2**12
    assert clf.coef_.shape == (1, 2**12)
    assert "word^w2" in clf.model_.names.values()
    assert clf.predict(thresher.scan(path, bits=12)).shape == (400,)


def test_features_that_were_not_in_training(rows, folder):
    """They do not change predictions, for any number."""
    path, X, _ = rows
    other = folder / "other.svm"
    other.write_text("".join(f"{line} 1000000:5\n" for line in path.read_text().splitlines()))
    for store in ("dense", "hashed"):
        clf = made(*RULES["truncated"], store=store, dtype="float64").fit(thresher.scan(path))
        np.testing.assert_array_equal(
            clf.decision_function(thresher.scan(other)), clf.decision_function(X)
        )


def test_held_out_rows(rows, folder):
    path, X, _ = rows
    other = svmlight(folder / "held_out.svm", seed=1)
    params = {"passes": 60, "tol": 1e-3, "patience": 2, "gravity": 1e-4}
    clf = made(thresher.TruncatedGradientClassifier, params)
    clf.fit(thresher.scan(path), eval_set=thresher.scan(other))
    losses = [r.valid_loss for r in clf.history_ if r.valid_loss is not None]
    assert len(losses) == clf.n_iter_
    assert clf.n_iter_ < 60
    Z, z = load_svmlight_file(str(other), n_features=X.shape[1])
    kept = np.mean(np.log1p(np.exp(-z * clf.decision_function(Z))))
    assert kept == pytest.approx(min(losses), rel=1e-6)


def test_batch_estimators_read_all_rows(rows):
    path, X, y = rows
    for cls in (thresher.StabilizedClassifier, thresher.CoordinateDescentClassifier):
        same(
            cls(random_state=0).fit(thresher.scan(path)).model_,
            cls(random_state=0).fit(X, y).model_,
        )
    y = y.astype(float)
    by_text = thresher.HardThresholdRegressor(n_nonzero=5).fit(thresher.scan(path))
    same(by_text.model_, thresher.HardThresholdRegressor(n_nonzero=5).fit(X, y).model_)


def learned(clf, *data, **options):
    """Fit in the order of the rows, so that a matrix and a source give the same model."""
    clf.set_params(shuffle=False, gravity=1e-4, dtype="float64", eta0=0.1)
    return clf.fit(*data, **options)


def test_what_works_on_a_matrix_works_on_a_source(rows):
    path, X, y = rows
    source = thresher.scan(path)
    kind = thresher.TruncatedGradientClassifier
    same(
        learned(kind(class_weight="balanced", passes=3), source).model_,
        learned(kind(class_weight="balanced", passes=3), X, y).model_,
    )
    held_out = (X[:50], y[:50])
    by_rows = learned(kind(passes=3), X, y, eval_set=held_out)
    of_rows = learned(kind(passes=3), source, eval_set=held_out)
    of_file = learned(kind(passes=3), X, y, eval_set=source)
    losses = [record.valid_loss for record in by_rows.history_]
    assert [record.valid_loss for record in of_rows.history_] == pytest.approx(losses)
    assert of_file.history_[-1].valid_loss == pytest.approx(
        learned(kind(passes=3), X, y, eval_set=(X, y)).history_[-1].valid_loss
    )


def test_warm_start_with_a_source(rows):
    path, X, y = rows
    kind = thresher.TruncatedGradientClassifier
    warm, other = (kind(warm_start=True, passes=2) for _ in range(2))
    learned(warm, X, y), learned(other, X, y)
    same(learned(warm, thresher.scan(path)).model_, learned(other, X, y).model_)
    assert warm.n_iter_ == 4


def test_callbacks_stop_at_their_record_on_a_source(rows):
    path, X, y = rows
    kind = thresher.TruncatedGradientClassifier
    stop = {"passes": 5, "callback": lambda record: record.examples >= 256}
    ended = learned(kind(**stop), thresher.scan(path))
    same(ended.model_, learned(kind(**stop), X, y).model_)
    assert ended.history_[-1].examples == 256


def test_certificates_and_levels_on_a_source(rows):
    path, X, y = rows
    of_matrix, of_file = (
        thresher.MarginPerceptronClassifier(levels=(0.05, 0.2), passes=3, shuffle=False).fit(*data)
        for data in ((X, y), (thresher.scan(path),))
    )
    assert list(of_file.level_models_) == list(of_matrix.level_models_) != []
    for level, model in of_matrix.level_models_.items():
        same(of_file.level_models_[level], model)
    assert of_file.model_.certificates == of_matrix.model_.certificates
    params = {"gravity": 1e-4, "eta0": 0.01, "decay": 1.0, "shuffle": False, "passes": 2}
    of_matrix, of_file = (
        thresher.TruncatedGradientClassifier(certify=True, dtype="float64", **params).fit(*data)
        for data in ((X, y), (thresher.scan(path),))
    )
    found, expected = of_file.model_.certificates, of_matrix.model_.certificates
    assert [c.name for c in found] == [c.name for c in expected]
    assert [c.value for c in found] == pytest.approx([c.value for c in expected])
    assert all(c.value is not None for c in found)


def test_numbers_of_any_size(folder):
    """Feature numbers of 2^63 and above need a hashed store."""
    path = folder / "wide.svm"
    path.write_text(f"1 {2**64 - 1}:1\n-1 {2**63}:1\n" * 20)
    clf = made(thresher.FTRLClassifier, {"l1": 0.1, "store": "hashed"}).fit(thresher.scan(path))
    assert clf.model_.indices.tolist() == [2**63 - 1, 2**64 - 2]
    assert clf.predict(thresher.scan(path)).tolist()[:2] == [1, -1]
    with pytest.raises(thresher.DataError, match="too large for a dense store"):
        made(thresher.FTRLClassifier, {}).fit(thresher.scan(path))


def test_a_matrix_as_wide_as_the_source(rows):
    """After a source, matrices have as many columns as its largest feature number."""
    path, X, _ = rows
    clf = made(*RULES["truncated"]).fit(thresher.scan(path))
    assert clf.coef_.shape == (1, X.shape[1])
    assert clf.predict(sp.csr_matrix(X)).shape == (300,)
