"""FeatureDiscovery of files and streams: blocks, names, namespaces, classes and readings."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

import thresher
from support.discovery_cases import discovered, same_results, signal
from support.files import pipe, svmlight, vw
from thresher import DataError, ParameterError
from thresher.data.writing import write
from thresher.errors import LabelError, ReadOnceError

pytestmark = pytest.mark.filterwarnings("ignore::thresher.discovery.DiscoveryWarning")


def split(path: Path, *ends: int) -> list[Path]:
    """Write the lines of a file to several files: each is a block."""
    lines = path.read_text().splitlines(keepends=True)
    names = []
    for number, (start, stop) in enumerate(pairwise([0, *ends, len(lines)])):
        names.append(path.with_name(f"part-{number}{path.suffix}"))
        names[-1].write_text("".join(lines[start:stop]))
    return names


def written(path: Path, X: np.ndarray, y: np.ndarray, weights: Any = None) -> Path:
    """Write rows as svmlight, or as VW text if they have weights."""
    lines = []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        pairs = " ".join(f"{j}:{float(x[j])!r}" for j in np.flatnonzero(x).tolist())
        lines.append(
            f"{label} {weights[t]} | {pairs}\n" if weights is not None else f"{label} {pairs}\n"
        )
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("kind", ["classification", "regression", "classes"])
def test_a_stream_equals_rows_in_memory(tmp_path: Path, kind: str) -> None:
    X, y = signal(kind, rows=500)
    if kind == "classes":
        y = np.searchsorted(["a", "b", "c"], y) + 4
    path = written(tmp_path / "rows.svm", X, y)
    matrix, labels = load_svmlight_file(str(path), zero_based=True)
    of_matrix = discovered(form="stream").fit(matrix, labels)
    for ends in ((), (123,), (1, 2, 30, 499)):
        source = thresher.scan(split(path, *ends), zero_based=True)
        same_results(discovered(form="stream").fit(source), of_matrix)
    for size in (1, 37, 500):
        more: dict[str, Any] = {} if kind == "classification" else {"classes": np.unique(labels)}
        task = "regression" if kind == "regression" else "auto"
        once = discovered(task=task).fit(pipe(matrix, labels, size), **more)
        np.testing.assert_array_equal(once.z_, of_matrix.z_)
        np.testing.assert_array_equal(once.qvalues_, of_matrix.qvalues_)
    parts = discovered()
    for start in range(0, 500, 61):
        rows = slice(start, start + 61)
        classes = None if kind == "regression" or start else np.unique(labels)
        parts.partial_fit(matrix[rows], labels[rows], classes=classes)
    same_results(parts, of_matrix)


@pytest.mark.parametrize("form", ["crossfit", "joint", "stream"])
def test_blocks_threads_and_folds_change_no_bit(tmp_path: Path, form: str) -> None:
    path = svmlight(tmp_path / "rows.svm", rows=600)
    whole = discovered(form=form).fit(thresher.scan(path))
    assert 0 < len(whole.selected_) < 60
    for ends in ((300,), (1, 10, 11, 200, 599), tuple(range(40, 600, 40))):
        found = discovered(form=form, n_jobs=2).fit(thresher.scan(split(path, *ends)))
        same_results(found, whole)
    X, y = load_svmlight_file(str(path))

    def batches() -> Any:
        return ((X[i : i + 77], y[i : i + 77]) for i in range(0, 600, 77))

    same_results(discovered(form=form).fit(thresher.scan(batches)), whole)
    few = thresher.scan(path, bits=6)
    limited, plain = (discovered(form=form, memory_limit=limit).fit(few) for limit in (1, None))
    same_results(limited, plain)


class Counted(thresher.Observer):
    """Notes the number of readings."""

    readings = 0

    def tell(self, event: str, **facts: Any) -> None:
        self.readings = facts.get("readings", self.readings)


def test_a_memory_limit_counts_if_the_number_of_features_is_not_known(tmp_path: Path) -> None:
    path = vw(tmp_path / "rows.vw", rows=600)
    whole = discovered().fit(thresher.scan(path))

    def readings(source: Any, **options: Any) -> int:
        observer = Counted()
        found = discovered(**options).fit(source, observer=observer)
        if source.bits is None and not options.get("dtype"):
            same_results(found, whole)
        return observer.readings

    assert readings(thresher.scan(path)) == 2
    assert readings(thresher.scan(path), memory_limit=1 << 20) == 6
    assert readings(thresher.scan(path), memory_limit=1 << 20, shuffle=True, dtype="float32") == 6
    enough = 5 * 2**12 * 128
    assert readings(thresher.scan(path, bits=12), memory_limit=enough) == 2
    assert readings(thresher.scan(path, bits=12), memory_limit=enough, dtype="float64") == 4
    assert readings(thresher.scan(path, bits=12), memory_limit=enough / 2) == 4
    write(thresher.scan(path), str(tmp_path / "rows.cache"), format="cache")
    cache = thresher.scan(tmp_path / "rows.cache")
    assert cache.distinct == 41
    assert readings(cache, memory_limit=1 << 20, dtype="float32") == 2


def test_a_stream_that_cannot_be_read_twice() -> None:
    X, y = signal()
    for form in ("crossfit", "joint"):
        with pytest.raises(ReadOnceError, match=r"can be read only once.*form='stream' needs one"):
            discovered(form=form).fit(pipe(X, y))
    found = discovered().fit(pipe(X, y))
    same_results(found, discovered(form="stream").fit(X, y))
    refitted = discovered(refit=True).fit(pipe(X, y))
    assert {3, 7} <= set(refitted.selected_.tolist())
    with pytest.raises(AttributeError, match="rows that can be read again"):
        _ = refitted.model_


def test_names_of_features(tmp_path: Path) -> None:
    path = vw(tmp_path / "rows.vw", rows=700)
    of_file = discovered().fit(thresher.scan(path))
    bits = discovered().fit(thresher.scan(path, bits=18))
    stream = discovered(form="stream").fit(thresher.scan(path))
    for found in (of_file, bits, stream):
        names = [each.feature for each in found.findings(10)]
        assert all(str(name).startswith("word^w") for name in names)
        assert names[0] in found.why(names[0])
        assert found.why(found.findings()[0].number) == found.why(names[0])
    assert of_file.selected_.dtype == np.uint64
    assert set(of_file.selected_.tolist()) <= set(of_file.features_.tolist())
    assert len(of_file.z_) == len(of_file.features_) == len(of_file.qvalues_)
    np.testing.assert_array_equal(of_file.get_support(indices=True), of_file.selected_)
    for call in (of_file.get_support, lambda: of_file.transform(np.zeros((2, 3)))):
        with pytest.raises((ParameterError, ValueError), match=r"64-bit keys|features"):
            call()
    assert bits.get_support().sum() == len(bits.selected_)
    assert of_file.why("cat") == "cat: no row has a nonzero value of it. 41 features occur."


@pytest.mark.parametrize("form", ["crossfit", "stream"])
def test_namespaces_as_groups(tmp_path: Path, form: str) -> None:
    path = vw(tmp_path / "rows.vw", rows=700)
    found = discovered(form=form, feature_groups="namespace").fit(thresher.scan(path))
    assert found.selected_groups_.tolist() == ["word"]
    assert len(found.selected_) == 40
    assert len(found.features_) == 41


def test_a_model_of_a_file(tmp_path: Path) -> None:
    path = vw(tmp_path / "rows.vw", rows=700)
    found = discovered(refit=True).fit(thresher.scan(path))
    labels = np.array([int(line.split()[0]) for line in path.read_text().splitlines()])
    assert (found.predict(thresher.scan(path)) == labels).mean() > 0.85
    found.model_.save(tmp_path / "model.thresher")
    loaded = thresher.load(tmp_path / "model.thresher")
    np.testing.assert_array_equal(
        loaded.predict(thresher.scan(path)), found.predict(thresher.scan(path))
    )
    assert {each.name for each in loaded.top(3)} <= {f"word^w{k}" for k in range(40)}
    noise = svmlight(tmp_path / "noise.svm", rows=300)
    rng = np.random.default_rng(0)
    words = [line.split(" ", 1)[1] for line in noise.read_text().splitlines()]
    noise.write_text("".join(f"{rng.choice([-1, 1])} {rest}\n" for rest in words))
    nothing = discovered(refit=True, fdr=1e-9).fit(thresher.scan(noise))
    assert len(nothing.selected_) == 0
    assert len(set(nothing.predict(thresher.scan(noise)).tolist())) == 1


def test_weights_of_a_file(tmp_path: Path) -> None:
    X, y = signal(rows=300)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], 300)
    path = written(tmp_path / "rows.vw", X, 2 * y - 1, weights)
    of_file = discovered(form="stream", refit=True).fit(thresher.scan(path, bits=8))
    plain = discovered(form="stream").fit(X, y, weights)
    np.testing.assert_allclose(np.sort(of_file.z_[of_file.z_ != 0]), np.sort(
        plain.z_[plain.z_ != 0]
    ), rtol=1e-4)  # fmt: skip
    assert len(of_file.selected_) == len(plain.selected_)


def test_classes_of_a_file(tmp_path: Path) -> None:
    path = svmlight(tmp_path / "rows.svm", rows=600, classes=(1, 2, 5))
    found = discovered().fit(thresher.scan(path))
    assert found.classes_.tolist() == [1, 2, 5]
    given = discovered().fit(thresher.scan(path), classes=[1, 2, 5])
    same_results(given, found)
    more = discovered().fit(thresher.scan(path), classes=[1, 2, 5, 9])
    assert more.classes_.tolist() == [1, 2, 5, 9]
    with pytest.raises(DataError, match="not among the classes"):
        discovered().fit(thresher.scan(path), classes=[1, 2])
    two = svmlight(tmp_path / "two.svm", rows=400, classes=(0, 1))
    assert discovered().fit(thresher.scan(two)).classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("first", "later", "regression"),
    [("{n3}", "0.5", True), ("{n3}", "77", False), ("{n30}", "1", True), ("{n3}.5", "1", True)],
)
def test_later_labels_decide_too(tmp_path: Path, first: str, later: str, regression: bool) -> None:
    path = tmp_path / "rows.svm"
    head = "".join(
        f"{first.format(n3=i % 3, n30=i % 30)} 1:{i % 7} 2:{i % 5}\n" for i in range(600)
    )
    path.write_text(head + f"{later} 1:3 2:1\n" * 60)
    found = discovered().fit(thresher.scan(split(path, 600)))
    assert hasattr(found, "classes_") != regression


def test_two_classes_that_change(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    head = "".join(f"{i % 2} 1:{i % 7} 2:{i % 5}\n" for i in range(600))
    path.write_text(head + "2.5 1:3 2:1\n" * 60)
    with pytest.raises(LabelError, match=r"part-1\.svm:1.*the label is 2\.5"):
        discovered().fit(thresher.scan(split(path, 600)))


@pytest.mark.parametrize("change", ["other", "shorter", "empty"])
def test_a_file_that_changes_between_readings(tmp_path: Path, change: str) -> None:
    parts = split(svmlight(tmp_path / "rows.svm", rows=400), 100, 300)
    text = parts[2].read_text()
    other = {
        "other": text.replace("1:1", "1:2"),
        "shorter": text[: text.index("\n", 500) + 1],
        "empty": "",
    }

    class Changes(thresher.Observer):
        def tell(self, event: str, **facts: Any) -> None:
            if event == "reading" and facts["number"] == 1 and facts["examples"] == 400:
                parts[2].write_text(other[change])

    found = discovered()
    with pytest.raises(DataError, match="changed since it was last read"):
        found.fit(thresher.scan(parts), observer=Changes())
    assert not hasattr(found, "n_rows_")


def test_labels_of_sorted_files(tmp_path: Path) -> None:
    """The first block has one label, which does not tell the others."""
    X, y = signal("classes", rows=600)
    classes = np.searchsorted(["a", "b", "c"], y)
    order = np.argsort(classes, kind="stable")
    first = int((classes == 0).sum())
    for labels in ([1, 2, 3], [-1, 0, 1], [0, 1, 1], [-1, 1, 1]):
        path = written(tmp_path / "rows.svm", X[order], np.array(labels)[classes[order]])
        source = thresher.scan(split(path, first), zero_based=True)
        assert discovered(shuffle=True).fit(source).classes_.tolist() == sorted(set(labels))
    numbers = np.where(np.arange(600) < 100, 1.0, np.random.default_rng(0).normal(size=600))
    path = written(tmp_path / "rows.svm", X, numbers)
    found = discovered().fit(thresher.scan(split(path, 50), zero_based=True))
    assert found.decision_.task == "regression"
    path = written(tmp_path / "rows.svm", X, np.ones(600, int))
    with pytest.raises(DataError, match="at least 2 classes"):
        discovered().fit(thresher.scan(path, zero_based=True))
