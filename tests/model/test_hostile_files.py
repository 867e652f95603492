"""Files with a correct checksum that nobody would write: small ones may not take much memory."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import thresher
from fuzzing.targets import Safetensors, sealed_model
from thresher import FTRLClassifier, ModelFileError
from thresher.errors import ParameterError
from thresher.model import file as model_file
from thresher.training import checkpoint as checkpoint_file
from thresher.training.checkpoint import TrainingCheckpoint, read

X = np.random.default_rng(0).normal(size=(60, 4))
MODEL = FTRLClassifier(l1=0.01).fit(X, X[:, 0] > 0).model_.named(["a", "b", "c", "d"])


def written(path, outputs=3, **about):
    """Write a model with `outputs` outputs, and these entries in its description."""
    made = replace(
        MODEL,
        indptr=np.zeros(outputs + 1, np.int64),
        indices=np.zeros(0, np.uint64),
        weights=np.zeros(0),
        intercept=np.zeros(outputs),
        classes=np.arange(outputs),
    )
    made.save(path)
    parts = Safetensors(path.read_bytes())
    parts.about |= about
    path.write_bytes(sealed_model(parts.pack()))
    return path


# Loads a file with at most 512 MB more than Python has. Prints the error, and the growth in MB.
LOAD = """
import resource, sys, thresher
resident = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = resident()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**29, size + 2**29))
try:
    thresher.load(sys.argv[1])
except thresher.ModelFileError as error:
    print(error)
print(resident() - before)
"""


@pytest.mark.parametrize(
    ("outputs", "classes"),
    [
        (2000, [str(label) for label in range(2000)]),
        (50_000, [*map(str, range(49_999)), "x" * 99_999]),
    ],
    ids=["wider than its labels", "one long label"],
)
def test_the_width_of_labels_is_bounded_by_the_file(tmp_path, outputs, classes):
    path = written(tmp_path / "m", outputs, classes=classes, classes_dtype="<U99999")
    assert path.stat().st_size < 2_000_000
    done = subprocess.run(
        [sys.executable, "-c", LOAD, path], capture_output=True, text=True, check=True
    )
    message, growth = done.stdout.splitlines()
    assert message.startswith(f"{path}: damaged: its classes would take ")
    assert int(growth) < 100


def test_long_and_short_labels_are_kept(tmp_path):
    """The labels of a model may be of very different lengths, and narrower than their type."""
    labels = np.array([*map(str, range(2000)), "x" * 5000], "<U8000")
    X, y = np.random.default_rng(0).normal(size=(2001, 3)), labels
    model = FTRLClassifier().fit(X, y).model_
    model.save(tmp_path / "m")
    found = thresher.load(tmp_path / "m").classes
    assert found.dtype == labels.dtype
    np.testing.assert_array_equal(found, np.unique(labels))


@pytest.mark.parametrize(
    ("message", "about"),
    [
        ("a class occurs twice", {"classes": ["a", "b", "a"], "classes_dtype": "<U1"}),
        ("a class occurs twice", {"classes": ["aa", "ab", "b"], "classes_dtype": "<U1"}),
        ("a class occurs twice", {"classes": [0.25, 0.5, 1], "classes_dtype": "<i8"}),
        ("a class occurs twice", {"classes": [1, True, "a"], "classes_dtype": "|O"}),
        ("NaN", {"classes": [1.0, float("nan"), 2.0], "classes_dtype": "<f8"}),
        ("NaN", {"classes": ["a", float("nan"), 2.0], "classes_dtype": "|O"}),
    ],
)
def test_classes_must_differ(tmp_path, message, about):
    path = written(tmp_path / "m", **about)
    with pytest.raises(ModelFileError, match=message):
        thresher.load(path)


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ([1e9, 1.0, 2.0], "<f2"),  # NumPy warned of it
        (["aa", "b", "c"], "<U1"),
        (["a\0", "b", "c"], "<U2"),
        ([0.5, 1, 2], "<i8"),
        (["1", "2", "3"], "<i8"),
        ([-1, 0, 1], "|u1"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_classes_are_of_their_type(tmp_path, classes, kind):
    path = written(tmp_path / "m", classes=classes, classes_dtype=kind)
    with pytest.raises(ModelFileError, match="m: damaged: "):
        thresher.load(path)


READING = {
    "bits": [-1, 0, 41, 18.0, True, "18"],
    "ngrams": [None, 0, 9, 1.5, 1e308, False, "text"],
    **{name: [-1, 2, 0.5, "yes"] for name in ("zero_based", "multilabel")},
    **{name: [-1, 2, "yes"] for name in ("header", "quotes")},
    **{name: [None, -1, 2, "1"] for name in ("first",)},
    **{name: [-1, "text", "zero\x1b"] for name in ("format", "missing", "dates")},
    **{name: [-1, True, 1e308] for name in ("label", "weight", "label_separator")},
    "delimiter": ["", ";;", "\n", "é", "\0", 1],
    "encoding": ["none", "a\0b", "", "hex", "zlib", "rot13", 1],
    **{
        name: [None, -1, 1e308, "text", '"a"', "{}", "[1]", "[[[[", "[" * 100_000, "1" * 5000]
        for name in ("text", "ignore", "columns", "interactions", "frame_columns")
    },
}
READING["interactions"] += ['["a"]', '["abc"]', '["a "]', '["a\u00e9"]']
READING["columns"] += ['["a", "a"]']
READING["kinds"] = [None, -1, "text", "[]", '{"a": "x"}', '{"a": []}']
READING["kinds"] += ['{"a": "text", "a": "number"}']


def read_by(path, **options):
    """Write a model with these options of reading."""
    MODEL.save(path)
    parts = Safetensors(path.read_bytes())
    parts.about["parameters"] |= options
    path.write_bytes(sealed_model(parts.pack()))
    return path


@pytest.mark.parametrize("name", READING)
def test_options_of_reading_are_those_that_training_writes(tmp_path, name):
    """Otherwise `predict` ends with a traceback, or with an error that does not name the file."""
    for value in READING[name]:
        path = read_by(tmp_path / "m", **{name: value})
        with pytest.raises(ModelFileError) as caught:
            thresher.load(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: damaged: its option of reading '{name}' is ")
        assert "; it must be " in message
        assert message.isprintable()
        assert len(message) < len(str(path)) + 200


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        (FTRLClassifier, "epsilon", ""),
        (FTRLClassifier, "loss", "x"),
        (thresher.CoordinateDescentClassifier, "tol", ""),
        (thresher.AveragedSGDRegressor, "passes", "inf"),
    ],
)
def test_parameters_of_estimators_are_checked(tmp_path, estimator, name, value):
    model = estimator(random_state=0).fit(np.eye(20), np.arange(20) % 2).model_
    replace(model, parameters={**model.parameters, name: value}).save(tmp_path / "m")
    with pytest.raises(ParameterError, match=f"{name} must be .*got '?{value}"):
        thresher.load(tmp_path / "m").estimator()


def test_passes_that_are_not_a_number_do_not_count(tmp_path):
    model = FTRLClassifier(passes=2).fit(np.eye(20), np.arange(20) % 2).model_
    replace(model, parameters={**model.parameters, "passes": "nan"}).save(tmp_path / "m")
    assert thresher.load(tmp_path / "m").estimator().predict(np.eye(20)).shape == (20,)


@pytest.mark.parametrize(
    ("name", "value", "now"),
    [
        *(("ngrams", value, int(value)) for value in (2.0, True)),
        *(("zero_based", value, bool(value)) for value in (None, 0.0, 1.0)),
        ("multilabel", None, False),
    ],
)
def test_options_of_reading_that_earlier_versions_wrote(tmp_path, name, value, now):
    found = thresher.load(read_by(tmp_path / "m", **{name: value}))
    assert (found.parameters[name], type(found.parameters[name])) == (now, type(now))
    found.save(tmp_path / "again")
    assert thresher.load(tmp_path / "again").parameters == found.parameters


def test_every_option_of_reading_is_checked(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("a;b;c;d;y\n" + "1;x;u v;;0\n2;z;w;;1\n" * 20)
    source = thresher.scan(
        [str(rows)], format="csv", bits=18, label="y", text="c", ngrams=2, ignore=["d"],
        header=True, delimiter=";", encoding="latin-1", quotes=True, missing="zero", dates="parts",
        label_separator=",", columns=["a", "b", "c", "d", "y"], interactions=["ab"],
    )  # fmt: skip
    written = {name: value for name, value in source.described().items() if value not in (None, "")}
    known = set(READING) - {"weight", "frame_columns"}
    assert known <= set(written)
    assert set(source.described()) <= set(READING)
    found = thresher.load(read_by(tmp_path / "m", **written))
    assert found.parameters.items() >= written.items()


def with_header(path, change, key=None):
    """Change the text of the header of a file, or of its description."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    text = content[8 : 8 + size].decode()
    if key is not None:
        header = json.loads(text)
        header["__metadata__"][key] = change(header["__metadata__"][key])
        text = json.dumps(header)
    else:
        text = change(text)
    path.write_bytes(len(text).to_bytes(8, "little") + text.encode() + content[8 + size :])


@pytest.mark.parametrize(
    ("name", "key", "place", "more"),
    [
        ("loss", "thresher", "{", '"loss": "squared", '),
        ("l1", "thresher", '"parameters": {', '"l1": 5, '),
        ("thresher", None, '"__metadata__":{', '"thresher":"{}",'),
    ],
)
def test_no_entry_of_a_model_occurs_twice(tmp_path, name, key, place, more):
    MODEL.save(path := tmp_path / "m")
    with_header(path, lambda text: text.replace(place, place + more, 1), key)
    with pytest.raises(ModelFileError, match=f"damaged: the entry '{name}' occurs twice"):
        thresher.load(path)


def test_no_entry_of_a_checkpoint_occurs_twice(tmp_path):
    path = tmp_path / "c"
    TrainingCheckpoint({"rule": "ftrl"}, [b"state"]).write(path)
    assert read(path).about == {"rule": "ftrl"}
    with_header(path, lambda text: text.replace("{", '{"states": 0, ', 1), "thresher-checkpoint")
    with pytest.raises(ModelFileError, match="damaged: the entry 'states' occurs twice"):
        read(path)


@pytest.mark.parametrize("about", [[], "rule", None, 1])
def test_the_description_of_a_run_has_entries(tmp_path, about):
    TrainingCheckpoint({"rule": "ftrl"}, [b"state"]).write(path := tmp_path / "c")
    hostile = json.dumps(about)
    with_header(path, lambda text: text.replace('{"rule": "ftrl"}', hostile), "thresher-checkpoint")
    with pytest.raises(ModelFileError, match=f"{path}: damaged: its description cannot be read"):
        read(path)


def test_many_entries_are_checked_in_one_pass(tmp_path):
    """With a pass over all names for each name, this took 20 seconds."""
    entries = ", ".join(f'"k{number}": 1' for number in range(60_000))
    TrainingCheckpoint({"rule": "ftrl"}, [b"state"]).write(path := tmp_path / "c")
    repeated = f'{{{entries}, "k59999": 2}}'
    with_header(path, lambda text: repeated, "thresher-checkpoint")
    started = time.process_time()
    with pytest.raises(ModelFileError, match="damaged: the entry 'k59999' occurs twice"):
        read(path)
    assert time.process_time() - started < 5


def cutting(monkeypatch, module, step, path):
    """Cut the file after a step of loading; the parts that are needed later are gone."""
    done = getattr(module, step)

    def cut(*arguments):
        done(*arguments)
        os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)

    monkeypatch.setattr(module, step, cut)


def test_a_model_that_is_cut_while_it_is_loaded(tmp_path, monkeypatch):
    """A file that is mapped into memory would end the process by SIGBUS."""
    weights = np.arange(1.0, 50_001.0)
    large = replace(
        MODEL,
        indptr=np.array([0, 50_000]),
        indices=np.arange(50_000, dtype=np.uint64),
        weights=weights,
        n_features=50_000,
        names=None,
    )
    large.save(path := tmp_path / "m")
    np.testing.assert_array_equal(thresher.load(path).weights, weights)
    cutting(monkeypatch, model_file, "_check_state", path)
    with pytest.raises(ModelFileError, match=r"not a model, or cut short .it became shorter"):
        thresher.load(path)


def test_a_checkpoint_that_is_cut_while_it_is_read(tmp_path, monkeypatch):
    TrainingCheckpoint({"rule": "ftrl"}, [bytes(500_000)]).write(path := tmp_path / "c")
    cutting(monkeypatch, checkpoint_file, "check_format", path)
    with pytest.raises(ModelFileError, match=r"not a checkpoint, or cut short .it became"):
        read(path)


def test_a_feature_has_one_name(tmp_path):
    MODEL.save(path := tmp_path / "m")
    parts = Safetensors(path.read_bytes())
    begin, end = parts.header["named"]["data_offsets"]
    named = np.frombuffer(parts.tensors[begin:end], np.uint64).copy()
    named[1] = named[0]
    parts.tensors = parts.tensors[:begin] + named.tobytes() + parts.tensors[end:]
    path.write_bytes(sealed_model(parts.pack()))
    with pytest.raises(ModelFileError, match="a feature has two names"):
        thresher.load(path)


def test_a_name_of_two_features_is_ambiguous():
    named = MODEL.named(["a", "a", "c", "d"])
    assert named.why("c").feature == "c"
    with pytest.raises(ValueError, match="2 features are named 'a': pass the number"):
        named.why("a")


@pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.soak)])
def test_one_long_label_among_many(tmp_path, count):
    """Labels as long as the longest one take much memory, and can be saved and loaded."""
    labels = np.array([*(f"c{i}" for i in range(count - 1)), "x" * (20_000_000 // count)])
    X = np.eye(count)
    fitted = thresher.AdaGradClassifier(random_state=0).fit(X, labels)
    fitted.model_.save(tmp_path / "m.thresher")
    loaded = thresher.load(tmp_path / "m.thresher")
    assert loaded.classes.tolist() == fitted.classes_.tolist()
