"""Sparse matrices whose arrays point outside of them: an error, not a crash in SciPy."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

import thresher
from thresher import DataError
from thresher.sparse_checks import refuse_malformed

ROWS, COLUMNS = 60, 12
Y = np.arange(ROWS) % 2

# What takes a matrix; each runs in a process of its own, which a crash would end.
TAKES = """
from thresher import *
from thresher import certificates, health
from thresher.model.density import selected_by_density
import numpy as np, scipy.sparse as sp, sys, warnings
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
sys.path.insert(0, sys.argv[1])
from test_malformed_matrices import ROWS, Y, malformed, whole
warnings.simplefilter("ignore")
fitted = FTRLClassifier(random_state=0).fit(whole(), Y)
scaler = UnitVarianceScaler().fit(whole())
grid = {"l1": [0.1, 1.0]}
pipeline = make_pipeline(TfidfTransformer(), FTRLClassifier())
takes = {
    "coordinate": lambda X: CoordinateDescentClassifier().fit(X, Y),
    "race": lambda X: SparseClassifier().fit(X, Y),
    "race of numbers": lambda X: SparseRegressor().fit(X, Y),
    "hard threshold": lambda X: HardThresholdRegressor(n_nonzero=2).fit(X, Y),
    "stabilized": lambda X: StabilizedClassifier().fit(X, Y),
    "ftrl": lambda X: FTRLClassifier().fit(X, Y),
    "ftrl, partly": lambda X: FTRLClassifier().partial_fit(X, Y, classes=[0, 1]),
    "one-pass": lambda X: OnePassClassifier().fit(X, Y),
    "label sets": lambda X: FTRLClassifier().fit(whole(), X),
    "predict": lambda X: fitted.predict(X),
    "scaler": lambda X: UnitVarianceScaler().fit(X),
    "scale": lambda X: scaler.transform(X),
    "selection": lambda X: StabilitySelection(FTRLClassifier()).fit(X, Y),
    "selection of a stream": lambda X: StreamingStabilitySelection(FTRLClassifier()).fit(X, Y),
    "path": lambda X: SparsityPath(FTRLClassifier()).fit(X, Y),
    "path of a pipeline": lambda X: SparsityPath(pipeline).fit(X, Y),
    "search": lambda X: OnePassSearchCV(FTRLClassifier(), grid).fit(X, Y),
    "search of a pipeline": lambda X: OnePassSearchCV(
        pipeline, {"ftrlclassifier__l1": [0.1, 1.0]}).fit(X, Y),
    "compare": lambda X: compare(X, Y),
    "evaluate": lambda X: evaluate(fitted, X, Y),
    "look": lambda X: look(X),
    "labels of look": lambda X: look(whole(), X),
    "model": lambda X: fitted.model_.predict(X),
    "explanation": lambda X: fitted.model_.explain(X),
    "iterator": lambda X: list(scan(iter([(X, Y)])).blocks()),
    "discovery": lambda X: FeatureDiscovery().fit(X, Y),
    "density": lambda X: selected_by_density(X, [0]),
    "safe step": lambda X: health.safe_step(X, loss="logistic"),
    "dynamic range": lambda X: health.dynamic_range(X),
}
for name, take in takes.items():
    for kind in ("csr", "csc", "coo", "lil"):
        for harm in ("far", "negative", "starts"):
            print(name, kind, harm, end=": ", flush=True)
            try:
                take(malformed(kind, harm))
            except DataError as error:
                print("good" if "\\n" not in str(error) else error, flush=True)
            except Exception as error:
                print(type(error).__name__, error, flush=True)
            else:
                print("no error", flush=True)
"""


def whole(kind="csr"):
    """Return a matrix with a value in every row and column."""
    rows = np.repeat(np.arange(ROWS), 3)
    columns = (np.arange(3 * ROWS) * 5) % COLUMNS
    values = np.random.default_rng(0).random(3 * ROWS) + 0.5
    return sp.csr_matrix((values, (rows, columns)), shape=(ROWS, COLUMNS)).asformat(kind)


def malformed(kind, harm):
    """Return the matrix with one number that is wrong."""
    X = whole(kind)
    if kind == "lil":
        X.rows[1] = {"far": [0, 1, 10**6], "negative": [-3, 1, 2], "starts": [0, 1]}[harm]
        return X
    numbers, others = (X.col, X.row) if kind == "coo" else (X.indices, X.indptr)
    if harm == "far":
        numbers[5] = 10**6
    elif harm == "negative":
        numbers[5] = -3
    else:
        others[5] = 10**6
    return X


def test_all_that_take_a_matrix_refuse_a_malformed_one(tmp_path):
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", TAKES, here]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.endswith(": good")] == []
    assert done.returncode == 0, done.stderr
    assert lines
    assert len(lines) % 12 == 0


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_a_good_matrix_passes_and_does_not_change(kind):
    X = whole(kind)
    refuse_malformed(X)
    assert (whole(kind) != X).nnz == 0


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_the_error_names_the_first_place(index):
    X = whole()
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    X.indices[7] = COLUMNS
    with pytest.raises(DataError, match=r"^row 2: feature number 12 is outside 0\.\.11$"):
        refuse_malformed(X)
    X = whole("csc")
    X.indices = X.indices.astype(index)
    X.indices[0] = -1
    with pytest.raises(DataError, match=r"^feature 0: row number -1 is outside 0\.\.59$"):
        refuse_malformed(X)
    X = whole("coo")
    X.row = X.row.astype(index)
    X.row[4] = ROWS
    with pytest.raises(DataError, match=r"^value 4: row number 60 is outside 0\.\.59$"):
        refuse_malformed(X)


def swap_bytes(X):
    """Store the indices in the other byte order; all but one are right."""
    X.indices[3] = COLUMNS
    X.indices = X.indices.astype(X.indices.dtype.newbyteorder())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.indptr.__setitem__(0, 1), "row 0: row starts must not decrease"),
        (lambda X: X.indptr.__setitem__(3, 0), "row 2: row starts must not decrease"),
        (lambda X: X.indptr.__setitem__(-1, 999), "row starts end at 999, and there are 180"),
        (lambda X: setattr(X, "indptr", X.indptr[:-1]), "expected 61 row starts; found 60"),
        (lambda X: setattr(X, "data", X.data[:50]), "180 indices and 50 values"),
        (swap_bytes, "row 1: feature number 12 is outside"),
    ],
)
def test_all_arrays_are_checked(change, words):
    X = whole()
    change(X)
    with pytest.raises(DataError, match=words):
        refuse_malformed(X)
    if "values" not in words and change is not swap_bytes:
        refuse_malformed(X, rows_checked=True)  # the core checks it


@pytest.mark.parametrize("kind", ["uint32", "int16", ">i4", ">i8"])
@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_types_of_indices_that_the_core_does_not_take(kind, name):
    """SciPy makes none of them, but lets users set them."""
    X = whole()
    setattr(X, name, getattr(X, name).astype(kind))
    for call in (thresher.FTRLClassifier().fit, thresher.FTRLClassifier().partial_fit):
        with pytest.raises(DataError, match=f"are int32 or int64; got {np.dtype(kind)}"):
            call(X, np.arange(X.shape[0]) % 2)


def changed(kind, **arrays):
    """Return a matrix with other arrays, made from its own."""
    X = whole(kind)
    for name, make in arrays.items():
        setattr(X, name, make(getattr(X, name)))
    return X


def list_of_arrays():
    X = whole("lil")
    X.rows[1], X.data[1] = np.array([0, 1, 2]), np.array([1.0, 2.0, 3.0])
    return X


def key_outside():
    X = whole("dok")
    X._dict[ROWS, 3] = 1.0
    return X


def as_float(array):
    return array.astype(np.float64)


BROKEN = {
    "block without height": lambda: changed("bsr", data=lambda data: data[:, :0]),
    "flat blocks": lambda: changed("bsr", data=lambda data: data.reshape(len(data), -1)),
    "blocks that leave rows": lambda: changed("bsr", data=lambda data: np.ones((len(data), 7, 1))),
    "starts of floats": lambda: changed("csr", indptr=as_float),
    "indices of floats": lambda: changed("csr", indices=as_float),
    "indices of objects": lambda: changed("csr", indices=lambda array: array.astype(object)),
    "indices of two dimensions": lambda: changed("csr", indices=lambda array: array[None]),
    "values of two dimensions": lambda: changed("csr", data=lambda data: data[:, None]),
    "more values than indices": lambda: changed("csr", data=lambda data: np.append(data, 1.0)),
    "numbers of floats": lambda: changed("coo", coords=lambda pair: (as_float(pair[0]), pair[1])),
    "lists that are arrays": list_of_arrays,
    "too few lists": lambda: changed("lil", rows=lambda rows: rows[:5]),
    "words in lists": lambda: changed("lil", rows=lambda rows: np.array([["a"] * 3] * ROWS, "O")),
    "too few offsets": lambda: changed("dia", offsets=lambda offsets: offsets[:1]),
    "flat diagonals": lambda: changed("dia", data=np.ravel),
    "key outside": key_outside,
}


@pytest.mark.parametrize("name", BROKEN)
def test_arrays_of_wrong_types_and_sizes_are_data_errors(name):
    fitted = thresher.FTRLClassifier(random_state=0).fit(whole(), Y)
    takes = [refuse_malformed, thresher.look, fitted.predict, fitted.model_.predict]
    takes += [lambda X, rule=rule: rule().fit(X, Y) for rule in (
        thresher.FTRLClassifier, thresher.CoordinateDescentClassifier)]  # fmt: skip
    for take in takes:
        with pytest.raises(DataError):
            take(BROKEN[name]())


class OtherSparse:
    """A matrix of another package than SciPy, such as `sparse`, in the format COO."""

    format, ndim, shape = "coo", 2, (ROWS, COLUMNS)

    def tocsr(self):
        return whole()


def test_matrices_of_other_packages_are_not_checked():
    refuse_malformed(OtherSparse())
    fitted = thresher.FTRLClassifier(random_state=0).fit(whole(), Y)
    predicted = fitted.model_.predict(OtherSparse())
    np.testing.assert_array_equal(predicted, fitted.predict(whole()))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("array", [False, True])
def test_look_takes_all_formats(kind, array):
    X = sp.csr_array(whole()).asformat(kind) if array else whole(kind)
    assert thresher.look(X, Y).facts.rows.read == ROWS


def test_numbers_that_no_row_has_do_not_count():
    X = whole()
    X.indices, X.data = np.append(X.indices, 10**6), np.append(X.data, 1.0)
    refuse_malformed(X)
    refuse_malformed(sp.csr_matrix((0, 3)))
    refuse_malformed(sp.csr_matrix((3, 0)))


def test_the_first_rows_of_a_pipeline_are_checked_too():
    pipeline = make_pipeline(TfidfTransformer(), thresher.FTRLClassifier())
    search = thresher.OnePassSearchCV(pipeline, {"ftrlclassifier__l1": [0.1, 1.0]})
    with pytest.raises(DataError, match="feature number 1000000 is outside"):
        search.fit(malformed("csr", "far"), Y)
