"""Sources in place of X: text -> model equals CSR -> model, however the text lies in files."""

import bz2
import gzip
import io
import lzma
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import svmlight, vw
from thresher.data.writing import write

# Parameters that do not depend on the number of rows, which a source does not know beforehand.
RULES = {
    "truncated": (thresher.TruncatedGradientClassifier, {"gravity": 1e-3}),
    "forward": (thresher.ForwardBackwardClassifier, {"l1": 1e-3}),
    "ftrl": (thresher.FTRLClassifier, {"l1": 0.5}),
    "dual": (thresher.DualAveragingClassifier, {"l1": 1e-3}),
    "averaged": (thresher.AveragedSGDClassifier, {}),
    "perceptron": (thresher.MarginPerceptronClassifier, {}),
    "mirror": (thresher.MirrorDescentClassifier, {"gravity": 1e-3}),
}
REGRESSORS = [
    (thresher.TruncatedGradientRegressor, {"gravity": 1e-3, "loss": "squared", "dtype": "float64"}),
    (thresher.FTRLRegressor, {"l1": 0.1, "loss": "huber", "dtype": "float64"}),
]
STORES = [("dense", "float32"), ("dense", "float64"), ("hashed", "float32"), ("hashed", "float64")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def rows(folder):
    """A file, and its rows as a matrix."""
    path = svmlight(folder / "rows.svm", rows=300)
    X, y = load_svmlight_file(str(path))
    return path, X, y.astype(int)


def made(cls, params, **more):
    known = cls().get_params()
    wanted = {"passes": 1, "shuffle": False, "tol": None, **params, **more}
    return cls(**{name: value for name, value in wanted.items() if name in known})


def same(model, other):
    """Two models have the same weights, to the bit."""
    assert model.indices.tolist() == other.indices.tolist()
    for name in ("weights", "intercept"):
        assert getattr(model, name).tobytes() == getattr(other, name).tobytes()
    if model.classes is None:
        assert other.classes is None
    else:
        assert model.classes.tolist() == other.classes.tolist()
    assert model.nnz > 0


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
    # Rows of a source are predicted in double precision, whatever they were learned in.
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
def test_partial_fit_in_turn(rows, folder, rule):
    """Parts of the rows as files, or as matrices, one after another."""
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


def test_sources_and_matrices_take_turns(rows):
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


# ---- however the rows lie ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(folder):
    """A file of several blocks of a megabyte."""
    return svmlight(folder / "large.svm", rows=600, repeat=100)


def fitted(source, **params):
    return made(thresher.FTRLClassifier, {"l1": 0.5, "store": "hashed", **params}).fit(source)


def test_one_thread_equals_many(large, folder):
    assert large.stat().st_size > 3 << 20
    one = fitted(thresher.scan(large, threads=1)).model_
    for threads in (2, 5):
        same(fitted(thresher.scan(large, threads=threads)).model_, one)
    words = vw(folder / "words.vw", rows=20_000)
    one = fitted(thresher.scan(words, threads=1)).model_
    same(fitted(thresher.scan(words, threads=4)).model_, one)


def test_packed_equals_plain(rows):
    path, _, _ = rows
    plain = fitted(thresher.scan(path)).model_
    content = path.read_bytes()
    zstandard = pytest.importorskip("zstandard")
    packers = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lambda text: lzma.compress(text, preset=0),
        "zst": zstandard.ZstdCompressor().compress,
    }
    for suffix, pack in packers.items():
        packed = path.with_name(f"{path.name}.{suffix}")
        packed.write_bytes(pack(content))
        same(fitted(thresher.scan(packed)).model_, plain)


def test_cache_equals_text(large, folder):
    for path in (large, vw(folder / "named.vw", rows=500)):
        cache = folder / f"{path.name}.cache"
        write(thresher.scan(path), str(cache), "cache")
        by_text, by_cache = fitted(thresher.scan(path)), fitted(thresher.scan(cache))
        same(by_cache.model_, by_text.model_)
        assert by_cache.model_.names == by_text.model_.names


def test_several_files_equal_one(large, folder):
    lines = large.read_text().splitlines(keepends=True)
    for number, start in enumerate(range(0, len(lines), 10_000)):
        text = "".join(lines[start : start + 10_000])
        if number == 1:
            text = text.removesuffix("\n")  # the file's end is the line's
        (folder / f"shard{number}.svm").write_text(text)
    whole = fitted(thresher.scan(large)).model_
    same(fitted(thresher.scan(folder / "shard?.svm")).model_, whole)
    same(fitted(thresher.scan([folder / f"shard{n}.svm" for n in range(6)])).model_, whole)


def test_iterators_of_batches(rows):
    _, X, y = rows
    parts = lambda: ((X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70))  # noqa: E731
    params = {"l1": 0.5, "store": "hashed"}
    same(
        fitted(thresher.scan(parts)).model_, made(thresher.FTRLClassifier, params).fit(X, y).model_
    )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_batches_of_an_iterator_are_numbered_as_a_matrix_is(rows, kind, store):
    _, X, y = rows
    X = kind(X.toarray())
    parts = lambda: ((X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70))  # noqa: E731
    for rule in ("ftrl", "mirror"):
        if rule == "mirror" and store == "hashed":
            continue
        clf = made(*RULES[rule], store=store).fit(thresher.scan(parts))
        expected = made(*RULES[rule], store=store).fit(X, y)
        same(clf.model_, expected.model_)
        assert clf.n_features_in_ == X.shape[1]
        assert clf.predict(X).tolist() == expected.predict(X).tolist()
    once = made(*RULES["ftrl"], store=store)
    once.partial_fit(thresher.scan(parts()), classes=[-1, 1])
    assert once.predict(X).shape == (300,)
    whole = thresher.CoordinateDescentClassifier(l1=0.01).fit(thresher.scan(parts))
    assert whole.n_features_in_ == X.shape[1]


def test_examples_as_dicts():
    examples = [({"ad": 1.0, "user^anna": 2.0}, 1), ({"loan": 1.0}, 0)] * 50
    clf = fitted(thresher.scan(lambda: iter(examples)))
    assert set(clf.model_.names.values()) == {"ad", "user^anna", "loan"}
    once = made(thresher.FTRLClassifier, {"l1": 0.5, "store": "hashed"})
    once.partial_fit(thresher.scan(iter(examples)), classes=[0, 1])
    same(once.model_, clf.model_)
    assert once.model_.names == clf.model_.names


# ---- what comes with it --------------------------------------------------------------------------


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


def test_features_that_training_did_not_have(rows, folder):
    """They count for nothing, whatever their numbers."""
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


# ---- what is refused -----------------------------------------------------------------------------


def test_labels_beside_a_source(rows):
    path, _, y = rows
    clf = made(*RULES["truncated"])
    with pytest.raises(thresher.ParameterError, match="has its own labels and weights"):
        clf.fit(thresher.scan(path), y)
    with pytest.raises(thresher.ParameterError, match="has its own labels and weights"):
        clf.partial_fit(thresher.scan(path), y, classes=[-1, 1])
    with pytest.raises(thresher.ParameterError, match="has its own labels and weights"):
        clf.fit(thresher.scan(path), sample_weight=np.ones(300))


def test_named_features_without_room(folder):
    source = thresher.scan(vw(folder / "room.vw", rows=50))
    with pytest.raises(thresher.ParameterError, match="store='hashed', or bits="):
        made(thresher.FTRLClassifier, {}).fit(source)


def learned(clf, *data, **options):
    """Fit in the order of the rows: to a matrix and to a source alike."""
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


def test_warm_start_goes_on_with_a_source(rows):
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


def test_standard_input_is_read_once(rows, monkeypatch):
    path, _, _ = rows

    def pipe():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        return thresher.scan("-")

    clf = made(*RULES["truncated"])
    with pytest.raises(thresher.ParameterError, match="partial_fit with classes="):
        clf.fit(pipe())
    source = pipe()
    clf.partial_fit(source, classes=[-1, 1])
    same(clf.model_, made(*RULES["truncated"]).fit(thresher.scan(path)).model_)
    with pytest.raises(thresher.ParameterError, match="only once"):
        clf.partial_fit(source)
    with pytest.raises(thresher.ParameterError, match="once"):
        thresher.scan(["-", "-"])


def test_bad_rows_name_their_place(folder):
    path = folder / "bad.svm"
    path.write_text("1 1:1\n-1 2:x\n")
    with pytest.raises(thresher.DataError, match=rf"^{path}:2:6: "):
        made(*RULES["truncated"]).fit(thresher.scan(path))
    path.write_text("1 1:1\n-1 2:1\n4 2:1\n")
    clf = made(*RULES["truncated"])
    with pytest.raises(thresher.DataError, match=rf"^{path}:3:1: the label 4 is not among"):
        clf.partial_fit(thresher.scan(path), classes=[-1, 1])
    assert not hasattr(clf, "classes_")  # the first call is all or nothing


def test_scan_refuses(folder):
    with pytest.raises(FileNotFoundError):
        thresher.scan(folder / "absent.svm")
    with pytest.raises(thresher.ParameterError, match="format must be one of"):
        thresher.scan(folder, format="tar")
    with pytest.raises(thresher.ParameterError, match="bits must be"):
        thresher.scan(folder, bits=50)
    with pytest.raises(thresher.ParameterError, match="at least one"):
        thresher.scan([])


def test_numbers_of_any_size(folder):
    """Feature numbers of 2^63 and above live in a hashed store, and not in a dense one."""
    path = folder / "wide.svm"
    path.write_text(f"1 {2**64 - 1}:1\n-1 {2**63}:1\n" * 20)
    clf = made(thresher.FTRLClassifier, {"l1": 0.1, "store": "hashed"}).fit(thresher.scan(path))
    assert clf.model_.indices.tolist() == [2**63 - 1, 2**64 - 2]
    assert clf.predict(thresher.scan(path)).tolist()[:2] == [1, -1]
    with pytest.raises(thresher.DataError, match="too large for a dense store"):
        made(thresher.FTRLClassifier, {}).fit(thresher.scan(path))


def test_a_matrix_as_wide_as_the_source_said(rows):
    """After a source, matrices may be as wide as its largest feature number."""
    path, X, _ = rows
    clf = made(*RULES["truncated"]).fit(thresher.scan(path))
    assert clf.coef_.shape == (1, X.shape[1])
    assert clf.predict(sp.csr_matrix(X)).shape == (300,)


def test_every_reading_can_be_stopped(folder):
    """It is asked before each block, and never in vain."""
    text = vw(folder / "stopped.vw", rows=20_000)
    readings = {
        "labels": lambda source: source.labels(),
        "width": lambda source: source.width(),
        "mean": lambda source: source.mean(),
        "names": lambda source: source.names([1]),
        "gather": lambda source: source.gather(),
    }
    for path in (text, write_cache(text, folder / "stopped.cache")):
        for name, reading in readings.items():
            source = thresher.scan(path, threads=1)
            assert len(list(source.blocks())) > 1
            asked = []

            def stops(asked=asked):
                asked.append(True)
                return len(asked) > 1

            source.stops = stops
            with pytest.raises(KeyboardInterrupt):
                reading(source)
            assert len(asked) == 2, name


def write_cache(source, path):
    write(thresher.scan(source), str(path), "cache")
    return path
