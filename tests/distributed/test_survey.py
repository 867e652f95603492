"""The first scan: what all parts agree on, and which data are refused."""

import gzip
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.files import svmlight, vw
from thresher import FTRLClassifier, FTRLRegressor, scan
from thresher.data.writing import write
from thresher.distributed.shards import find_shards
from thresher.distributed.survey import (
    SurveyResult,
    find_names,
    map_in_process,
    shard_checksums,
    survey_shards,
    surveyed_labels,
)
from thresher.errors import DataError
from thresher.rules import core_args
from thresher.training.plan import labels_for


def labels_of(estimator, source):
    """Return what one machine makes of the labels of a source."""
    params = estimator.get_params(deep=False)
    loss = core_args.loss_of(estimator.rule, params)
    return labels_for(estimator.rule, estimator.task, loss, params, source, "")


def sent(function, items):
    """Run a function as a cluster does: all is pickled on the way there and back."""
    return [
        pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(function))(item)))
        for item in pickle.loads(pickle.dumps(items))
    ]


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([-1, 0, 1, 2.5]), st.integers(1, 40)), min_size=2, max_size=30
    ),
    parts=st.integers(1, 5),
    zero_based=st.booleans(),
)
def test_what_is_agreed_is_what_there_is(tmp_path_factory, rows, parts, zero_based):
    labels = Counter(label for label, _ in rows)
    path = tmp_path_factory.getbasetemp() / "agreed.svm"
    path.write_text("".join(f"{label} {key}:1\n" for label, key in rows))
    shards = find_shards(
        path, {"zero_based": zero_based, "format": "svmlight"}, min(parts, len(rows))
    )
    if len(labels) < 2:
        with pytest.raises(DataError, match="a classifier needs rows of at least 2 classes"):
            survey_shards(shards, sent)
        return
    agreed = survey_shards(shards, sent)
    assert agreed.classes == sorted(labels)
    assert agreed.counts == [labels[label] for label in sorted(labels)]
    assert sum(agreed.rows) == len(rows)
    assert agreed.rows == [
        sum(block.rows for block in shards.source(part).blocks()) for part in range(shards.parts)
    ]
    assert agreed.width == max(key for _, key in rows) + zero_based
    assert (agreed.named, agreed.first) == (False, 0 if zero_based else 1)
    assert SurveyResult.from_json(agreed.to_json()) == agreed


@pytest.mark.parametrize("classes", [(-1, 1), (0, 1), (1, 2, 7)])
@pytest.mark.parametrize("loss", ["logistic", "clipped_square"])
def test_labels_are_those_that_fit_makes(tmp_path, classes, loss):
    path = svmlight(tmp_path / "a.svm", rows=80, classes=classes)
    agreed = survey_shards(find_shards(path, parts=3))
    labels = surveyed_labels("classifier", loss, False, agreed)
    source = scan(path)
    expected = labels_of(FTRLClassifier(loss=loss), source)
    assert type(labels) is type(expected)
    assert labels.classes.tolist() == expected.classes.tolist()
    assert labels.classes.dtype == expected.classes.dtype
    assert labels.counted[0].tolist() == expected.counted[0].tolist()
    assert labels.counted[1] == expected.counted[1] == 80
    for block in source.blocks():
        for ours, theirs in zip(labels.targets(block), expected.targets(block), strict=True):
            assert ours.tobytes() == theirs.tobytes()


def test_words_and_lists_of_labels(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs the extra arrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "words.csv"
    path.write_text("x,label\n" + "1,yes\n2,no\n3,yes\n")
    agreed = survey_shards(find_shards(path), sent)
    assert (agreed.classes, agreed.counts) == (["no", "yes"], [1, 2])
    assert (agreed.named, agreed.width) == (True, 2**64)
    expected = labels_of(FTRLClassifier(), scan(path))
    labels = surveyed_labels("classifier", "logistic", False, agreed)
    assert labels.classes.tolist() == expected.classes.tolist() == ["no", "yes"]

    sets = tmp_path / "sets.svm"
    sets.write_text("1,3 1:1\n 2:1\n3 4:1\n")
    shards = find_shards(sets, {"multilabel": True}, parts=2)
    agreed = survey_shards(shards)
    assert (agreed.classes, agreed.counts, sum(agreed.rows)) == ([1, 3], [1, 2], 3)
    labels = surveyed_labels("classifier", "logistic", True, agreed)
    expected = labels_of(FTRLClassifier(), scan(sets, multilabel=True))
    assert type(labels) is type(expected)
    assert labels.counted[0].tolist() == expected.counted[0].tolist()

    lists = tmp_path / "lists.parquet"
    parquet.write_table(pa.table({"x": [1.0, 2.0], "label": [[1.0, 2.0], [2.0]]}), lists)
    with pytest.raises(DataError, match=rf"{lists}:1: rows have lists of labels"):
        survey_shards(find_shards(lists))
    assert survey_shards(find_shards(lists, {"multilabel": True})).counts == [1, 2]


def test_numbers_to_predict_are_checked(tmp_path):
    path = svmlight(tmp_path / "a.svm", rows=20, classes=(-1.5, 2.25, 3))
    agreed = survey_shards(find_shards(path, parts=2), task="regressor", loss="squared")
    assert agreed.classes is None
    labels = surveyed_labels("regressor", "squared", False, agreed)
    assert type(labels) is type(labels_of(FTRLRegressor(), scan(path)))
    with pytest.raises(DataError, match=r"a.svm:\d+:1: .*loss poisson needs >= 0"):
        survey_shards(find_shards(path, parts=2), task="regressor", loss="poisson")


def test_width(tmp_path):
    path = vw(tmp_path / "a.vw", rows=30)
    assert survey_shards(find_shards(path)).width == 2**64
    assert survey_shards(find_shards(path, {"bits": 12})).width == 4096
    big = tmp_path / "big.svm"
    big.write_text(f"1 1:1\n-1 {2**63 + 5}:1\n")
    assert survey_shards(find_shards(big, parts=2)).width == 2**64
    none = tmp_path / "none.svm"
    none.write_text("1\n-1\n")
    assert survey_shards(find_shards(none, {"format": "svmlight"})).width == 1


# ---- checksums -----------------------------------------------------------------------------------


def test_checksums_see_any_change_and_no_threads(tmp_path):
    path = svmlight(tmp_path / "a.svm", rows=15_000)
    (tmp_path / "b.svm.gz").write_bytes(gzip.compress(path.read_bytes()))
    data = str(tmp_path / "*.svm*")
    shards = find_shards(data, parts=5)
    agreed = survey_shards(shards)
    assert len({checksum for part in agreed.checksums for checksum in part}) == 5
    assert [len(part) for part in agreed.checksums] == [1] * 5
    threaded = find_shards(data, {"threads": 4}, parts=5)
    assert survey_shards(threaded, sent).checksums == agreed.checksums
    places = [(part, 0) for part in range(5)]
    assert shard_checksums(shards, places, "float64", sent) == [c for (c,) in agreed.checksums]
    text = bytearray(path.read_bytes())
    at = text.rindex(b":1.", 0, len(text) // 2) + 1
    text[at : at + 1] = b"3"
    path.write_bytes(text)
    changed = [
        a != b
        for a, (b,) in zip(
            shard_checksums(shards, places, "float64"), agreed.checksums, strict=True
        )
    ]
    assert sum(changed) == 1


def test_checksums_of_tables_and_caches(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    path = svmlight(tmp_path / "a.svm", rows=60)
    for format in ("cache", "parquet"):
        write(scan(path), str(tmp_path / f"rows.{format}"), format)
        shards = find_shards(tmp_path / f"rows.{format}")
        before = survey_shards(shards).checksums
        assert survey_shards(shards, sent).checksums == before
        other = svmlight(tmp_path / "other.svm", rows=60, seed=1)
        write(scan(other), str(tmp_path / f"rows.{format}"), format)
        assert survey_shards(shards).checksums != before


def test_several_shards_in_a_part_have_a_checksum_each(tmp_path):
    for seed in range(4):
        svmlight(tmp_path / f"{seed}.svm", rows=50, seed=seed)
    alone = survey_shards(find_shards(tmp_path / "*.svm")).checksums
    together = survey_shards(find_shards(tmp_path / "*.svm", parts=2)).checksums
    assert [c for part in together for c in part] == [c for part in alone for c in part]


# ---- refusals ------------------------------------------------------------------------------------


def test_bad_rows_are_named(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 2:1\n1 3:x\n-1 1:1\n")
    with pytest.raises(DataError, match=rf"{path}:3:5: "):
        survey_shards(find_shards(path, parts=3), sent)
    agreed = survey_shards(find_shards(path, {"on_bad_line": "skip"}))
    assert (sum(agreed.rows), agreed.skipped) == (3, 1)


def test_rows_without_labels_are_named(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |a x\n |a y\n-1 |a z\n")
    with pytest.raises(DataError, match=rf"{path}:2:1: the row has no label"):
        survey_shards(find_shards(path, parts=3))


def test_parts_without_rows(tmp_path):
    svmlight(tmp_path / "a.svm", rows=20)
    (tmp_path / "b.svm").write_text("# nothing\n\n")
    with pytest.raises(DataError, match=r"b.svm \(bytes 0 to 11\): no rows to learn from"):
        survey_shards(find_shards(tmp_path / "*.svm"))
    assert survey_shards(find_shards(tmp_path / "*.svm", parts=1)).rows == [20]


def test_labels_that_are_partly_words(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra arrow")
    svmlight(tmp_path / "a.svm", rows=20)
    (tmp_path / "b.csv").write_text("x,label\n1,yes\n2,no\n")
    data = [tmp_path / "a.svm", tmp_path / "b.csv"]
    with pytest.raises(DataError, match=r"b.csv: labels are partly numbers and partly words"):
        survey_shards(find_shards(data))
    with pytest.raises(DataError, match=r"b.csv:2: labels are partly numbers and partly words"):
        survey_shards(find_shards(data, parts=1))


# ---- names ---------------------------------------------------------------------------------------


def test_names_are_those_of_one_source(tmp_path):
    path = vw(tmp_path / "a.vw", rows=60)
    source = scan(path)
    keys = np.unique(
        np.concatenate([np.asarray(b.native.keys).view(np.uint64) for b in source.blocks()])
    )
    shards = find_shards(path, parts=4)
    wanted = [*keys.tolist()[::2], 12345]
    found = find_names(shards, wanted, sent)
    assert found == dict(sorted(source.names(wanted).items()))
    assert len(found) == len(wanted) - 1
    assert find_names(shards, []) == {}
    assert find_names(find_shards(svmlight(tmp_path / "a.svm", rows=5)), [1, 2]) == {}
    # The first part that has a name gives it.
    parts = [replace(shards, groups=(group,)) for group in shards.groups]
    first = find_names(parts[0], wanted, map_in_process)
    assert first.items() <= found.items()
