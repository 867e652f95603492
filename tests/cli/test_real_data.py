"""The command line on real data: train, predict, inspect."""

import json
import lzma
import re
import tarfile

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import called

pytestmark = pytest.mark.data


def predicted(model, data, *options):
    return called("predict", model, data, *options).stdout.splitlines()


def labels_of(path):
    """Return the labels of a compressed text file: the first word of each line."""
    with lzma.open(path, "rt") as file:
        return np.array([float(line.split(maxsplit=1)[0]) for line in file])


def top_of(model, count=20):
    return json.loads(called("inspect", model, "--json", "--top", str(count)).stdout)


@pytest.mark.parametrize(("options", "error"), [([], 0.14), (["--bits", "18"], 0.14)])
def test_rcv1(data_dir, tmp_path, options, error):
    model, data = tmp_path / "rcv1.thresher", data_dir / "rcv1_small.vw.xz"
    options = ["--rule", "truncated-gradient", *options]
    done = called("train", data, "-m", model, "--passes", "4", *options, "--json")
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["examples"] == 4 * 1000
    assert last["mean_loss"] < 0.25
    assert abs(last["distinct_features"] - 9_700) < 500
    test = data_dir / "rcv1_small_test.vw.xz"
    found = np.array([float(line.split()[0]) for line in predicted(model, test)])
    assert np.mean(found != labels_of(test)) <= error
    facts = top_of(model)
    assert facts["nonzero weights"] < 9_600
    assert all(re.fullmatch(r"(.+\^)?\w+", str(entry["name"])) for entry in facts["top"])


def test_a9a(data_dir, tmp_path):
    """The model reaches the error of tuned linear models."""
    model, data, test = (
        tmp_path / "a9a.thresher",
        data_dir / "a9a.svm.xz",
        data_dir / "a9a.t.svm.xz",
    )
    options = ["--rule", "ftrl", "--passes", "3", "--shuffle", "--quiet"]
    called("train", data, "-m", model, *options)
    truth = labels_of(test)
    found = np.array(predicted(model, test), float)
    assert np.mean(found != truth) <= 0.155
    shares = np.array(predicted(model, test, "--as", "probability"), float)
    assert np.mean((shares > 0.5) == (truth > 0)) == np.mean(found == truth)
    loss = -np.mean(np.log(np.where(truth > 0, shares, 1 - shares)))
    assert loss < 0.335
    assert abs(shares.mean() - np.mean(truth > 0)) < 0.03  # probabilities are calibrated, too
    X, _ = load_svmlight_file(str(unpacked(test, tmp_path)), n_features=123)
    decided = thresher.load(model).decision_function(X)
    np.testing.assert_allclose(
        np.array(predicted(model, test, "--as", "raw"), float), decided, rtol=1e-6, atol=1e-8
    )
    facts = top_of(model, 3)
    assert facts["features"] == 123
    assert len(facts["top"]) == 3


def unpacked(path, folder):
    plain = folder / path.name.removesuffix(".xz")
    plain.write_bytes(lzma.decompress(path.read_bytes()))
    return plain


EURLEX = [
    "--rule",
    "ftrl",
    "--l1",
    "0.1",
    "--alpha",
    "1",
    "--passes",
    "30",
]  # few rows, many passes


def test_eurlex(data_dir, tmp_path):
    """Multilabel rows, with the most frequent labels of the first rows."""
    with lzma.open(data_dir / "eurlex4k_train.txt.xz", "rt") as file:
        file.readline()
        rows = [file.readline() for _ in range(400)]
    sets = [row.split(maxsplit=1)[0].split(",") for row in rows]
    counts: dict[str, int] = {}
    for labels in sets:
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
    kept = sorted(counts, key=lambda label: -counts[label])[:5]
    lines = [
        ",".join(label for label in labels if label in kept) + " " + row.split(maxsplit=1)[1]
        for labels, row in zip(sets, rows, strict=True)
    ]
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text("300 5000 3993\n" + "".join(lines[:300]))  # the header of such files
    test.write_text("".join(lines[300:]))
    model = tmp_path / "eurlex.thresher"
    reading = ["--format", "svmlight", "--zero-based"]
    called("train", train, "-m", model, "--multilabel", *reading, *EURLEX, "--quiet")
    loaded = thresher.load(model)
    assert sorted(str(label) for label in loaded.classes) == sorted(kept)
    for data, least in ((train, 0.95), (test, 0.4)):
        found = [set(filter(None, line.split(","))) for line in predicted(model, data, *reading)]
        truth = [
            set(filter(None, line.split(" ", 1)[0].split(",")))
            for line in data.read_text().splitlines()
            if ":" in line
        ]
        assert len(found) == len(truth)
        hits = sum(len(a & b) for a, b in zip(found, truth, strict=True))
        both = sum(len(a) + len(b) for a, b in zip(found, truth, strict=True))
        assert 2 * hits / both >= least  # the F measure over all labels
    facts = top_of(model, 5)
    assert facts["classes"].startswith("5: ")


@pytest.fixture(scope="module")
def news(data_dir, tmp_path_factory):
    """Write messages of two groups as VW text: words of the subject and of the body."""
    folder = tmp_path_factory.mktemp("news")
    groups = {"rec.sport.hockey": 1, "sci.space": -1}
    rows: dict[str, list[str]] = {"train": [], "test": []}
    with tarfile.open(data_dir / "20news-bydate.tar.xz") as tar:
        for member in tar:
            part, _, group = member.name.rpartition("/")[0].rpartition("/")
            if not member.isfile() or group not in groups:
                continue
            text = tar.extractfile(member).read().decode("latin-1")
            head, _, body = text.partition("\n\n")
            subject = " ".join(re.findall(r"^Subject: (.*)", head, re.M))
            words = [" ".join(re.findall(r"[a-z]{2,}", t.lower())) for t in (subject, body)]
            tag = member.name.rpartition("/")[2]
            line = f"{groups[group]} '{tag}|subject {words[0]} |body {words[1]}\n"
            rows["train" if "train" in part else "test"].append((member.name, line))
    for part, lines in rows.items():
        lines.sort(key=lambda row: hash_of(row[0]))  # mixes the groups, always in the same order
        (folder / f"{part}.vw").write_text("".join(line for _, line in lines))
    return folder


def hash_of(name):
    import zlib

    return zlib.crc32(name.encode())


@pytest.mark.parametrize("options", [[], ["--bits", "18"]])
def test_newsgroups(news, tmp_path, options):
    model = tmp_path / "news.thresher"
    arguments = ["--rule", "ftrl", "--l1", "1", "--alpha", "1", "--passes", "3", *options]
    called("train", news / "train.vw", "-m", model, *arguments, "--quiet")
    lines = predicted(model, news / "test.vw")
    truth = (news / "test.vw").read_text().splitlines()
    assert len(lines) == len(truth) > 700
    assert all(line.split()[1].isdigit() for line in lines)  # the numbers of the messages
    right = np.mean([a.split()[0] == b.split()[0] for a, b in zip(lines, truth, strict=True)])
    assert right > 0.95
    facts = top_of(model, 40)
    assert facts["nonzero weights"] < 5000
    weights = {entry["name"]: entry["weight"] for entry in facts["top"]}
    assert {"body^hockey", "body^space"} <= set(weights)
    assert weights["body^hockey"] > 0 > weights["body^space"]
    (why,) = json.loads(called("inspect", model, "--why", "body^space", "--json").stdout)
    assert why["weight"] == weights["body^space"]
