"""The survey: what it finds, and which data are errors."""

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
from thresher.training.source_labels import labels_for


def labels_of(estimator, source):
    """Return the labels of a source as one machine converts them."""
    params = estimator.get_params(deep=False)
    loss = core_args.loss_of(estimator.rule, params)
    return labels_for(estimator.rule, estimator.task, loss, params, source, "")


def sent(function, items):
    """Call a function as a cluster does: functions, items and results are pickled."""
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
def test_the_survey_finds_rows_labels_and_width(tmp_path_factory, rows, parts, zero_based):
    labels = Counter(label for label, _ in rows)
    path = tmp_path_factory.getbasetemp() / "survey.svm"
    path.write_text("".join(f"{label} {key}:1\n" for label, key in rows))
    shards = find_shards(
        path, {"zero_based": zero_based, "format": "svmlight"}, min(parts, len(rows))
    )
    if len(labels) < 2:
        with pytest.raises(DataError, match="a classifier needs rows of at least 2 classes"):
            survey_shards(shards, sent)
        return
    survey = survey_shards(shards, sent)
    assert survey.classes == sorted(labels)
    assert survey.counts == [labels[label] for label in sorted(labels)]
    assert sum(survey.rows) == len(rows)
    assert survey.rows == [
        sum(block.rows for block in shards.source(part).blocks()) for part in range(shards.parts)
    ]
    assert survey.width == max(key for _, key in rows) + zero_based
    assert (survey.named, survey.first) == (False, 0 if zero_based else 1)
    assert SurveyResult.from_json(survey.to_json()) == survey


@pytest.mark.parametrize("classes", [(-1, 1), (0, 1), (1, 2, 7)])
@pytest.mark.parametrize("loss", ["logistic", "clipped_square"])
def test_labels_are_those_of_fit(tmp_path, classes, loss):
    path = svmlight(tmp_path / "a.svm", rows=80, classes=classes)
    survey = survey_shards(find_shards(path, parts=3))
    labels = surveyed_labels("classifier", loss, False, survey)
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
    survey = survey_shards(find_shards(path), sent)
    assert (survey.classes, survey.counts) == (["no", "yes"], [1, 2])
    assert (survey.named, survey.width) == (True, 2**64)
    expected = labels_of(FTRLClassifier(), scan(path))
    labels = surveyed_labels("classifier", "logistic", False, survey)
    assert labels.classes.tolist() == expected.classes.tolist() == ["no", "yes"]

    sets = tmp_path / "sets.svm"
    sets.write_text("1,3 1:1\n 2:1\n3 4:1\n")
    shards = find_shards(sets, {"multilabel": True}, parts=2)
    survey = survey_shards(shards)
    assert (survey.classes, survey.counts, sum(survey.rows)) == ([1, 3], [1, 2], 3)
    labels = surveyed_labels("classifier", "logistic", True, survey)
    expected = labels_of(FTRLClassifier(), scan(sets, multilabel=True))
    assert type(labels) is type(expected)
    assert labels.counted[0].tolist() == expected.counted[0].tolist()

    lists = tmp_path / "lists.parquet"
    parquet.write_table(pa.table({"x": [1.0, 2.0], "label": [[1.0, 2.0], [2.0]]}), lists)
    with pytest.raises(DataError, match=rf"{lists}:1: rows have lists of labels"):
        survey_shards(find_shards(lists))
    assert survey_shards(find_shards(lists, {"multilabel": True})).counts == [1, 2]


def test_labels_of_a_regression_are_checked(tmp_path):
    path = svmlight(tmp_path / "a.svm", rows=20, classes=(-1.5, 2.25, 3))
    survey = survey_shards(find_shards(path, parts=2), task="regressor", loss="squared")
    assert survey.classes is None
    labels = surveyed_labels("regressor", "squared", False, survey)
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


def test_checksums_depend_on_data_and_not_on_threads(tmp_path):
    path = svmlight(tmp_path / "a.svm", rows=15_000)
    (tmp_path / "b.svm.gz").write_bytes(gzip.compress(path.read_bytes()))
    data = str(tmp_path / "*.svm*")
    shards = find_shards(data, parts=5)
    survey = survey_shards(shards)
    assert len({checksum for part in survey.checksums for checksum in part}) == 5
    assert [len(part) for part in survey.checksums] == [1] * 5
    threaded = find_shards(data, {"threads": 4}, parts=5)
    assert survey_shards(threaded, sent).checksums == survey.checksums
    places = [(part, 0) for part in range(5)]
    assert shard_checksums(shards, places, "float64", sent) == [(c, c) for (c,) in survey.checksums]
    text = bytearray(path.read_bytes())
    at = text.rindex(b":1.", 0, len(text) // 2) + 1
    text[at : at + 1] = b"3"
    path.write_bytes(text)
    changed = [
        a != (b, b)
        for a, (b,) in zip(
            shard_checksums(shards, places, "float64"), survey.checksums, strict=True
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


# ---- errors --------------------------------------------------------------------------------------


def test_bad_rows_are_named(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 2:1\n1 3:x\n-1 1:1\n")
    with pytest.raises(DataError, match=rf"{path}:3:5: "):
        survey_shards(find_shards(path, parts=3), sent)
    survey = survey_shards(find_shards(path, {"on_bad_line": "skip"}))
    assert (sum(survey.rows), survey.skipped) == (3, 1)


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


@pytest.mark.parametrize(("importance", "weighted"), [("", False), (" 1", False), (" 2.5", True)])
def test_the_survey_finds_weights(tmp_path, importance, weighted):
    path = tmp_path / "rows.vw"
    path.write_text(f"1 | a\n-1{importance} | b\n1 | c\n-1 | a\n")
    survey = survey_shards(find_shards(path, {"format": "vw"}, 2))
    assert survey.weighted == weighted
    fields = survey.to_json()
    assert SurveyResult.from_json(fields) == survey
    del fields["weighted"]  # as earlier versions wrote it
    assert not SurveyResult.from_json(fields).weighted
