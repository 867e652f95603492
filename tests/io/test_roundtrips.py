"""Conversion of any format to any other keeps the examples, bit-identical."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thresher
from support.files import svmlight, vw
from thresher.data.writing import format_of, write

TEXT = ["svmlight", "vw", "cache", "parquet"]
PACKED = ["", ".gz", ".bz2", ".xz", ".zst"]
SUFFIX = {"svmlight": "svm", "vw": "vw", "csv": "csv", "parquet": "parquet", "cache": "cache"}

finite = st.floats(allow_nan=False, allow_infinity=False)
small_keys = st.integers(0, 12)
any_keys = small_keys | st.integers(0, 2**64 - 2) | st.integers(2**63 - 2, 2**63 + 2)


def rows(keys, labels, weights=(1.0,)):
    """Draw rows: (labels, weight, [(key, value)])."""
    cells = st.dictionaries(keys, finite, max_size=5).map(lambda found: list(found.items()))
    return st.lists(st.tuples(labels, st.sampled_from(weights), cells), min_size=1, max_size=6)


def vw_text(examples):
    lines = []
    for label, weight, cells in examples:
        head = "" if math.isnan(label) else f"{label!r} {weight!r} "
        lines.append(head + "| " + " ".join(f"{key}:{value!r}" for key, value in cells) + "\n")
    return "".join(lines)


def examples_of(path, **options):
    """Read a file; return its rows, with values as bits."""
    found = []
    for block in thresher.scan(path, **options).blocks(dtype="float64"):
        starts, labels = block.label_sets()
        cells = np.asarray(block.native.starts)
        keys = np.asarray(block.native.keys).astype(np.int64).view(np.uint64).tolist()
        values = [value.hex() for value in np.asarray(block.native.values).tolist()]
        weights = [1.0] * block.rows if block.weights is None else block.weights.tolist()
        for row in range(block.rows):
            of = slice(cells[row], cells[row + 1])
            chosen = labels[starts[row] : starts[row + 1]].tolist()
            pairs = list(zip(keys[of], values[of], strict=True))
            found.append((chosen, weights[row], pairs))
    return found


def expected(examples):
    return [
        (
            [] if math.isnan(label) else [label],
            1.0 if math.isnan(label) else weight,
            [(key, float(value).hex()) for key, value in cells],
        )
        for label, weight, cells in examples
    ]


def converted(path, to, **options):
    """Convert a file; return the new one."""
    out = path.with_name(f"{path.name}-{to}.{SUFFIX[to]}")
    write(thresher.scan(path, **options), str(out), to)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("roundtrips")


# Each example writes many files.
relaxed = settings(
    max_examples=settings.default.max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@relaxed
@given(rows(any_keys, finite))
def test_keys_of_64_bits(folder, examples):
    """Every pair of formats that allow any key."""
    path = folder / "any.vw"
    path.write_text(vw_text(examples))
    for first, second in itertools.product(TEXT, TEXT):
        once = converted(path, first)
        assert examples_of(once, format=first) == expected(examples)
        again = converted(once, second, format=first)
        assert examples_of(again, format=second) == expected(examples)


@relaxed
@given(rows(any_keys, finite | st.just(math.nan), [0.0, 0.1, 1.0, 3.5]))
def test_weights_and_missing_labels(folder, examples):
    """Only formats that can hold them are tested."""
    path = folder / "weighted.vw"
    path.write_text(vw_text(examples))
    formats = ("vw", "parquet", "cache")
    for first, second in itertools.product(formats, formats):
        once = converted(path, first)
        again = converted(once, second, format=first)
        assert examples_of(again, format=second) == expected(examples)


@relaxed
@given(rows(small_keys, finite, [0.1, 1.0, 3.5]))
def test_csv(folder, examples):
    """One column per feature; the features of a row are in the order of the columns."""
    path = folder / "few.vw"
    # A row with all features, so that all columns exist.
    path.write_text(vw_text([*examples, (1.0, 2.0, [(key, 0.5) for key in range(13)])]))
    table = converted(path, "csv")
    options = {"format": "csv", "label": "label", "weight": "weight"}
    wanted = [(a, b, sorted(cells)) for a, b, cells in examples_of(path)]
    assert examples_of(table, **options) == wanted
    for to in ("vw", "parquet", "cache", "csv"):
        assert examples_of(
            converted(table, to, **options), **(options if to == "csv" else {"format": to})
        ) == [(a, b, sorted(cells)) for a, b, cells in wanted]


@relaxed
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 10**6), max_size=3, unique=True).map(sorted),
            st.dictionaries(any_keys, finite, max_size=4),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_lists_of_labels(folder, examples):
    path = folder / "lists.svm"
    lines = [
        ",".join(map(str, labels))
        + " "
        + " ".join(f"{key + 1}:{value!r}" for key, value in cells.items())
        for labels, cells in examples
    ]
    path.write_text("\n".join(line if line.strip() else " 1:0" for line in lines) + "\n")
    options = {"format": "svmlight", "multilabel": True}
    wanted = examples_of(path, **options)
    for (labels, cells), row in zip(examples, wanted, strict=True):
        assert row[0] == labels
        assert not cells or row[2] == [(key, value.hex()) for key, value in cells.items()]
    formats = ("svmlight", "parquet", "cache")
    for first, second in itertools.product(formats, formats):
        once = converted(path, first, **options)
        again = converted(once, second, format=first, multilabel=True)
        assert examples_of(again, format=second, multilabel=True) == wanted


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("format", ["svmlight", "vw", "csv"])
def test_compressed(folder, format, packing):
    """The suffix decides the compression in writing; reading does not need it."""
    path = svmlight(folder / "plain.svm", rows=50)
    out = folder / f"packed.{SUFFIX[format]}{packing}"
    assert format_of(str(out)) == format
    assert write(thresher.scan(path), str(out), format) == 50
    wanted = examples_of(path)
    if format == "csv":
        wanted = [(a, b, sorted(cells)) for a, b, cells in wanted]
    assert examples_of(out) == wanted
    upper = folder / f"packed.{SUFFIX[format]}{packing.upper()}"
    write(thresher.scan(path), str(upper), format_of(str(upper)))
    assert upper.read_bytes() == out.read_bytes()
    unnamed = out.rename(folder / "unnamed")
    assert examples_of(unnamed) == wanted


def test_a_cache_and_vw_text_keep_names(folder):
    path = vw(folder / "names.vw", rows=30)
    wanted = examples_of(path)
    for to in ("vw", "svmlight", "parquet", "cache"):
        out = converted(path, to)
        assert examples_of(out, format=to) == wanted
        keys = [key for _, _, cells in wanted for key, _ in cells]
        names = thresher.scan(out, format=to).names(keys)
        assert ("word^w1" in names.values()) == (to in ("cache", "vw"))


def test_tags(folder):
    path = vw(folder / "tags.vw", rows=30)
    for to in ("vw", "cache"):
        (block,) = thresher.scan(converted(path, to)).blocks()
        assert block.tags == [f"row{n}" for n in range(30)]


def test_bits_are_applied_once(folder):
    path = vw(folder / "bits.vw", rows=30)
    wanted = examples_of(path, bits=6)
    for to in ("vw", "svmlight", "parquet", "cache", "csv"):
        out = converted(path, to, bits=6)
        found = examples_of(out, format=to)
        if to == "csv":
            wanted = [(a, b, sorted(cells)) for a, b, cells in wanted]
        assert found == wanted


def test_zero_based(folder):
    path = folder / "zero.svm"
    path.write_text("1 0:1 7:2\n-1 3:0.5\n")
    wanted = [([1.0], 1.0, [(0, (1.0).hex()), (7, (2.0).hex())]), ([-1.0], 1.0, [(3, (0.5).hex())])]
    assert examples_of(path, zero_based=True) == wanted
    for to in ("vw", "parquet", "cache", "csv"):
        assert examples_of(converted(path, to, zero_based=True), format=to) == wanted
    again = converted(path, "svmlight", zero_based=True)
    assert examples_of(again, zero_based=True) == wanted


def test_many_blocks(folder):
    """Files of several blocks, and of several batches of tables."""
    path = svmlight(folder / "many.svm", rows=1000, repeat=30)
    wanted = examples_of(path)
    for to in ("vw", "parquet", "cache"):
        assert examples_of(converted(path, to), format=to) == wanted
    table = examples_of(converted(path, "csv"), format="csv")
    assert table == [(a, b, sorted(cells)) for a, b, cells in wanted]


@pytest.mark.parametrize(
    ("text", "format", "message"),
    [
        ("1 2.5 | 3\n", "svmlight", r"x\.vw:1: the weight is 2.5; svmlight has no weights"),
        ("1 | 3\n| 3\n", "svmlight", r"x\.vw:2: .*label"),
        ("1 | 18446744073709551615\n", "svmlight", r"x\.vw:1: .*zero-based"),
    ],
)
def test_rows_that_a_format_cannot_hold(folder, text, format, message):
    path = folder / "x.vw"
    path.write_text(text)
    with pytest.raises(thresher.DataError, match=message):
        converted(path, format)
    assert not (folder / f"x.vw-{format}.svm").exists()


def test_words_as_labels(folder):
    path = folder / "words.csv"
    path.write_text("a,label\n1,cat\n2,dog\n")
    for to in ("svmlight", "vw"):
        with pytest.raises(thresher.DataError, match="labels are words"):
            converted(path, to)
    for to in ("parquet", "cache"):
        (block,) = thresher.scan(converted(path, to)).blocks()
        assert block.labels.tolist() == ["cat", "dog"]


def test_too_wide_for_csv(folder):
    path = folder / "wide.svm"
    path.write_text("1 100000:1\n")
    with pytest.raises(thresher.ParameterError, match="set bits= in scan to reduce them"):
        converted(path, "csv")
