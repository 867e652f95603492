"""Looks at real data sets, as files that people have."""

from __future__ import annotations

import csv
import tarfile

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import thresher

pytestmark = pytest.mark.data


def names(look):
    return {one.name for one in look.findings}


@pytest.mark.parametrize(
    ("file", "label", "task", "options"),
    [
        ("spambase", "57", "two classes", ["--no-header", "--label -1", "--shuffle"]),
        ("magic04", "10", "two classes", ["--no-header", "--label -1", "--shuffle"]),
        ("wdbc", "1", "two classes", ["--no-header", "--label 1", "--ignore 0"]),
        ("wpbc", "1", "two classes", ["--no-header", "--label 1", "--ignore 0"]),
        ("breast-cancer-wisconsin", "10", "two classes", ["--label -1", "--ignore 0"]),
        ("crx", "a16", "two classes", ["--label a16", "--missing indicator", "--shuffle"]),
        (
            "housing",
            "13",
            "regression",
            ["--label -1", "--loss squared"],
        ),
        ("zoo", "Y", "classes", ["--label Y"]),
    ],
)
def test_tables_of_uci(data_dir, file, label, task, options):
    look = thresher.look(data_dir / "uci" / f"{file}.data")
    assert look.facts.label.columns == (label,)
    assert look.facts.label.task == task
    assert [option for option in options if option not in look.command] == []


def test_a9a_needs_nothing(data_dir):
    look = thresher.look(data_dir / "a9a.svm.xz")
    assert look.command == f"thresher train {data_dir}/a9a.svm.xz -m model.thresher"
    assert (look.facts.rows.read, look.facts.features.count) == (32_561, 123)
    assert dict(look.facts.label.counts) == {-1.0: 24_720, 1.0: 7_841}


def test_eurlex_is_multilabel_and_from_zero(data_dir):
    look = thresher.look(data_dir / "eurlex4k_train.txt.xz")
    assert look.command.endswith("--zero-based --multilabel -m model.thresher")
    assert (look.facts.rows.read, look.facts.features.count) == (15_539, 5_000)
    assert look.facts.label.classes == 3_786


def test_rcv1_has_a_namespace(data_dir):
    look = thresher.look(data_dir / "rcv1_small.vw.xz")
    assert look.facts.features.namespaces[0][:2] == ("f", 9_738)
    assert not look.findings


@pytest.fixture(scope="module")
def messages(data_dir):
    """Texts of three newsgroups, sorted by group."""
    found = []
    with tarfile.open(data_dir / "20news-bydate.tar.xz") as archive:
        for member in archive:
            group = member.name.split("/")[-2] if member.isfile() else ""
            if group in ("rec.autos", "sci.space", "sci.med") and len(found) < 3000:
                file = archive.extractfile(member)
                text = file.read().decode("latin-1").partition("\n\n")[2]
                found.append((group, " ".join(text.split())[:2000]))
    return sorted(found)


def test_newsgroups_sorted_by_group(messages, tmp_path):
    path = tmp_path / "news.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("group", "message"), *messages])
    look = thresher.look(path)
    assert look.facts.label.columns == ("group",)
    assert look.facts.label.classes == 3
    for option in ("--label group", "--text message", "--shuffle"):
        assert option in look.command


def test_newsgroups_as_lines_of_label_and_text(messages, tmp_path):
    path = tmp_path / "news.txt"
    path.write_text("".join(f"{group}\t{text.replace(chr(9), ' ')}\n" for group, text in messages))
    look = thresher.look(path)
    assert look.facts.rows.read == len(messages)
    assert [one.name for one in look.facts.columns] == ["label", "text"]
    used = [word for word in look.command.split() if word.startswith("--")]
    assert used == ["--format", "--shuffle"]


def test_newsgroups_as_parquet_with_categories(messages, tmp_path):
    path = tmp_path / "news.parquet"
    groups, texts = zip(*messages[::-7], strict=True)
    table = pa.table({"message": texts, "class": pa.array(groups).dictionary_encode()})
    parquet.write_table(table, path)
    look = thresher.look(path)
    kinds = {one.name: one.kind for one in look.facts.columns}
    assert kinds == {"message": "text", "class": "category"}
    assert "--text message" in look.command
