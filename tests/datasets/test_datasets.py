"""Loaders of the papers' data sets: small generated files of the same format, and the real ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from support.syncs import watched
from thresher import TruncatedGradientClassifier, datasets
from thresher.datasets.catalogue import SPECS
from thresher.errors import DataError, ParameterError

COMPRESS = {"": bytes, ".xz": lzma.compress, ".bz2": bz2.compress, ".gz": gzip.compress}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has its own cache of parsed files."""
    monkeypatch.setenv("THRESHER_CACHE", str(tmp_path / "parsed"))


def svmlight(rows: int, width: int, seed: int = 0) -> bytes:
    """Return text whose first feature is the class."""
    rng = np.random.default_rng(seed)
    lines = []
    for row in range(rows):
        y = 1 if row % 2 else -1
        at = np.unique(rng.integers(2, width + 1, 5))
        lines.append(f"{y:+d} 1:{y} " + " ".join(f"{j}:{rng.random():.4f}" for j in at))
    return ("\n".join(lines) + "\n").encode()


def news(folder: Path, suffix: str = ".gz") -> None:
    """Write an archive of 60 short messages of four groups; each word is in many messages."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for number in range(60):
            group = ("comp.graphics", "rec.autos", "sci.med", "talk.misc")[number % 4]
            part = "train" if number < 40 else "test"
            text = f"Subject: {group}\n\nThe {group[:3]}word wheel {'abcd'[number % 3] * 3} 7\n"
            entry = tarfile.TarInfo(f"20news-bydate-{part}/{group}/{number}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode("latin-1")))
    compressed = COMPRESS[suffix](whole.getvalue())
    (folder / f"20news-bydate.tar{suffix}").write_bytes(compressed)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_gisette(tmp_path: Path, suffix: str) -> None:
    compress = COMPRESS[suffix]
    (tmp_path / f"gisette_scale{suffix}").write_bytes(compress(svmlight(30, 5000)))
    (tmp_path / f"gisette_scale.t{suffix}").write_bytes(compress(svmlight(10, 5000, seed=1)))
    assert datasets.names(tmp_path) == ["gisette"]
    data = datasets.load("gisette", tmp_path)
    assert data.X_train.shape == (30, 5000)
    assert data.X_test.shape == (10, 5000)
    assert data.X_train.dtype == np.float32
    assert set(data.y_train) == {-1.0, 1.0}
    assert np.allclose(np.sqrt(data.X_train.multiply(data.X_train).sum(axis=1)), 1, atol=1e-6)
    raw = datasets.load("gisette", tmp_path, unit_norm=False)
    assert np.array_equal(raw.X_train[:, 0].toarray().ravel(), raw.y_train)
    assert data.X_valid is None


def test_rcv1(tmp_path: Path) -> None:
    """The published files, a 70/30 split of the first, and a random draw from the second."""
    (tmp_path / "rcv1_train.binary.bz2").write_bytes(bz2.compress(svmlight(100, 47_236)))
    assert datasets.names(tmp_path) == ["rcv1_train"]
    (tmp_path / "rcv1_test.binary.bz2").write_bytes(bz2.compress(svmlight(400, 47_236, 1)))
    data = datasets.load("rcv1", tmp_path)
    assert (data.X_train.shape, data.X_test.shape) == ((100, 47_236), (400, 47_236))
    cut = datasets.load("rcv1_train", tmp_path)
    assert (cut.y_train.size, cut.y_test.size) == (70, 30)
    drawn = datasets.load("rcv1", tmp_path, split="random")
    assert drawn.y_valid is not None
    assert (drawn.y_train.size, drawn.y_valid.size, drawn.y_test.size) == (100, 2, 4)
    train, test = datasets.sources("rcv1", tmp_path)
    assert test is not None
    clf = TruncatedGradientClassifier(gravity=0.0).fit(train)
    assert clf.score(test) > 0.95


def test_webspam(tmp_path: Path) -> None:
    """One file: parts are drawn without reading other rows into memory."""
    (tmp_path / "webspam_wc_normalized_trigram.svm.xz").write_bytes(
        lzma.compress(svmlight(700, 16_609_143))
    )
    data = datasets.load("webspam", tmp_path, split="random")
    assert data.y_valid is not None
    assert (data.y_train.size, data.y_valid.size, data.y_test.size) == (100, 10, 100)
    assert data.X_train.shape[1] == 16_609_143
    rows = [
        tuple(x.indices[x.indptr[i] : x.indptr[i + 1]])
        for x in (data.X_train, data.X_valid, data.X_test)
        for i in range(x.shape[0])
    ]
    assert len(set(rows)) == 210
    train, test = datasets.sources("webspam", tmp_path)
    assert test is None
    assert TruncatedGradientClassifier().fit(train).n_features_in_ > 1e7


def test_dexter_with_and_without_its_validation_file(tmp_path: Path) -> None:
    counts = b"+1 5:3 19999:1\n-1 7:2\n" * 10
    (tmp_path / "dexter_train.svm").write_bytes(counts)
    with pytest.warns(UserWarning, match="differs from the known file dexter_train.svm"):
        cut = datasets.load("dexter", tmp_path, unit_norm=False)
    assert (cut.y_train.size, cut.y_test.size) == (14, 6)
    (tmp_path / "dexter_valid.svm").write_bytes(counts)
    with pytest.warns(UserWarning, match="differs from the known file"):
        whole = datasets.load("dexter", tmp_path, unit_norm=False)
    assert (whole.y_train.size, whole.y_test.size) == (20, 20)
    assert whole.X_train.max() == 3


def test_internet_ads(tmp_path: Path) -> None:
    """1,558 attributes; the first four may be missing, three of them with spaces before."""
    rng = np.random.default_rng(0)
    lines = []
    for row in range(40):
        known = [f"{rng.integers(1, 640):4d}" for _ in range(2)] + [f"{rng.random() * 9:.4f}", "1"]
        first = known if row % 3 else ["   ?", "   ?", "   ?", "?"]
        words = (rng.random(1554) < 0.01).astype(int).astype(str)
        lines.append(",".join([*first, *words, "ad." if row % 4 == 0 else "nonad."]))
    (tmp_path / "ad.data").write_text("\n".join(lines) + "\n")
    data = datasets.load("ad", tmp_path, unit_norm=False)
    assert (data.X_train.shape, data.X_test.shape) == ((30, 1558), (10, 1558))
    assert np.mean(np.r_[data.y_train, data.y_test] > 0) == 0.25
    assert np.isfinite(data.X_train.data).all()
    assert 0 <= data.X_train.data.min() <= data.X_train.data.max() <= 1
    # a row whose numbers are missing has no entry for them
    assert (np.diff(data.X_train[:, :4].tocsr().indptr) == 0).any()


@pytest.mark.parametrize("suffix", COMPRESS)
def test_newsgroups(tmp_path: Path, suffix: str) -> None:
    news(tmp_path, suffix)
    with pytest.warns(UserWarning, match="differs from the known file"):
        data = datasets.load("comp_vs_rec", tmp_path)
    assert (data.y_train.size, data.y_test.size) == (20, 10)
    with pytest.warns(UserWarning, match="differs from the known file"):
        all_groups = datasets.load("news20", tmp_path)
    assert all_groups.task == "multiclass"
    assert set(all_groups.y_train) == {0, 1, 2, 3}


def test_newsgroups_at_random(tmp_path: Path) -> None:
    """The paper's proportions, no message twice, and only frequent words of the task."""
    news(tmp_path)
    with pytest.warns(UserWarning, match="differs from the known file"):
        data = datasets.load("sci_vs_rec", tmp_path, split="random", unit_norm=False)
    assert data.y_valid is not None
    sizes = (data.y_train.size, data.y_valid.size, data.y_test.size)
    assert sizes == (14, 6, 10)
    words = data.X_train.shape[1]
    assert words == data.X_test.shape[1] == data.X_valid.shape[1]
    # "subject", "wheel", aaa/bbb/ccc, and the names and words of the two groups of the task
    assert words == 5 + 6
    assert np.sum(np.r_[data.y_train, data.y_valid, data.y_test] > 0) == 15


def test_big_ads_in_any_format(tmp_path: Path) -> None:
    (tmp_path / "big_ads_train.csv").write_text("label,word,x\n" + "1,shoes,2\n-1,books,3\n" * 20)
    with pytest.raises(ParameterError, match="sources"):
        datasets.load("big_ads", tmp_path)
    train, test = datasets.sources("big_ads", tmp_path)
    assert test is None
    (tmp_path / "big_ads_test.csv.gz").write_bytes(gzip.compress(b"label,word,x\n1,shoes,2\n"))
    train, test = datasets.sources("big_ads", tmp_path)
    assert test is not None
    assert TruncatedGradientClassifier(store="hashed").fit(train).score(test) == 1.0


def test_the_cache_is_used_until_the_file_changes(tmp_path: Path) -> None:
    for file in ("gisette_scale", "gisette_scale.t"):
        (tmp_path / file).write_bytes(svmlight(10, 50))
    first = datasets.load("gisette", tmp_path)
    kept = list((tmp_path / "parsed").iterdir())
    again = datasets.load("gisette", tmp_path)
    assert np.array_equal(first.X_train.toarray(), again.X_train.toarray())
    assert list((tmp_path / "parsed").iterdir()) == kept
    kept[0].write_bytes(b"damaged")
    assert datasets.load("gisette", tmp_path).y_train.size == 10
    (tmp_path / "gisette_scale").write_bytes(svmlight(12, 50))
    assert datasets.load("gisette", tmp_path).y_train.size == 12


def test_a_damaged_cache_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte is checked: a bit that has changed in any place changes no row."""
    for file in ("gisette_scale", "gisette_scale.t"):
        (tmp_path / file).write_bytes(svmlight(10, 50))
    found = watched(monkeypatch)
    first = datasets.load("gisette", tmp_path)
    assert len(found) == 2, "the file and its folder are written to the disk"
    (kept,) = (tmp_path / "parsed").iterdir()
    content = kept.read_bytes()
    shapes = [found.end() for found in re.finditer(rb"'shape': \(", content)]
    for place in (*shapes, *range(0, len(content), 61)):
        kept.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        again = datasets.load("gisette", tmp_path)
        assert (first.X_train != again.X_train).nnz == 0
        assert np.array_equal(first.y_train, again.y_train)
        assert (first.X_test != again.X_test).nnz == 0
        assert np.array_equal(first.y_test, again.y_test)


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THRESHER_DATA", raising=False)
    with pytest.raises(ParameterError, match="THRESHER_DATA"):
        datasets.load("gisette")
    with pytest.raises(ParameterError, match="is not a folder"):
        datasets.names(tmp_path / "absent")
    with pytest.raises(ParameterError, match=r"no data set 'gisett'; there are: ad, .*big_ads"):
        datasets.load("gisett", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"needs gisette_scale \(plain, .xz"):
        datasets.load("gisette", tmp_path)
    with pytest.raises(ParameterError, match="comp_vs_rec"):
        datasets.load("gisette", tmp_path, split="random")
    with pytest.raises(ParameterError, match="split must be"):
        datasets.load("gisette", tmp_path, split="other")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="not svmlight or VW text"):
        datasets.sources("spambase", tmp_path)
    with pytest.raises(FileNotFoundError, match="big_ads_train"):
        datasets.sources("big_ads", tmp_path)
    for file in ("gisette_scale", "gisette_scale.t"):
        (tmp_path / file).write_text("1 6000:1\n")
    with pytest.raises(DataError, match="gisette_scale: n_features"):
        datasets.load("gisette", tmp_path)
    monkeypatch.setenv("THRESHER_DATA", str(tmp_path))
    assert datasets.names() == ["gisette"]


@pytest.mark.parametrize(
    ("name", "file", "content", "reason"),
    [
        ("ad", "ad.data", b"1,2,ad.\n1,ad.\n", "row 2 has 2 cells, row 1 has 3"),
        ("ad", "ad.data", b"1,two,ad.\n1,2,nonad.\n", "two"),
        ("ad", "ad.data", b"1,inf,ad.\n1,2,nonad.\n", "inf is not a finite number"),
        ("ad", "ad.data", b" \n", "the file has no rows"),
        ("ad", "ad.data", "1,\u00e9,ad.\n".encode(), "ascii"),
        ("housing", "housing.data", b"1 nan\n2 3\n", "nan is not a finite number"),
        ("wdbc", "wdbc.data", b"M\nB\n", "out of bounds"),
        ("news20", "20news-bydate.tar", b"no archive" * 200, ""),
        ("news20", "20news-bydate.tar", bytes(10_240), "no messages of any group"),
        ("pcmac", "pcmac.svm", b"", "the file has no rows"),
        ("pcmac", "pcmac.svm", b"1 1:nan\n-1 2:1\n", "not a finite number"),
        ("pcmac", "pcmac.svm", b"1 1:1\nnan 2:1\n", "not a finite number"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*differs from the known file")
def test_files_that_cannot_be_parsed(
    tmp_path: Path, name: str, file: str, content: bytes, reason: str
) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=f"{file}: .*{reason}"):
        datasets.load(name, tmp_path)


def test_a_file_with_another_checksum_warns_every_time(tmp_path: Path) -> None:
    (tmp_path / "pcmac.svm").write_bytes(svmlight(10, 50))
    for _ in range(2):
        with pytest.warns(UserWarning, match="differs from the known file pcmac.svm"):
            datasets.load("pcmac", tmp_path)


def test_the_package_does_not_import_datasets() -> None:
    code = "import sys, thresher; sys.exit('thresher.datasets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# ---- the real files --------------------------------------------------------------------------

SIZES = {
    "crx": (46, 526, 164), "housing": (13, 381, 125), "krvskp": (73, 2413, 783),
    "magic04": (10, 14226, 4794), "mushroom": (116, 6079, 2045), "spambase": (57, 3445, 1156),
    "wbc": (9, 520, 179), "wdbc": (30, 421, 148), "wpbc": (32, 153, 45), "zoo": (16, 77, 24),
    "dexter_scaled": (7751, 300, 300), "dorothea": (100_000, 800, 350),
    "arcene": (10_000, 100, 100),
}  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("name", SIZES)
def test_the_papers_sizes(data_dir: Path, name: str) -> None:
    """Rows as in the paper; columns within 1, because papers count categories or a constant."""
    if name not in datasets.names(data_dir):
        pytest.skip(f"no files of {name}")
    data = datasets.load(name, data_dir)
    width, train, test = SIZES[name]
    assert (data.y_train.size, data.y_test.size) == (train, test)
    assert abs(data.X_train.shape[1] - width) <= 1
    assert datasets.verify(name, data_dir) == []


@pytest.mark.data
def test_the_papers_newsgroups(data_dir: Path) -> None:
    """Rows as in the paper; about as many words."""
    if "comp_vs_rec" not in datasets.names(data_dir):
        pytest.skip("no newsgroups")
    data = datasets.load("comp_vs_rec", data_dir, split="random", unit_norm=False)
    assert data.y_valid is not None
    assert (data.y_train.size, data.y_valid.size, data.y_test.size) == (4278, 1644, 2948)
    assert abs(data.X_train.shape[1] / 21_317 - 1) < 0.06
    assert np.sum(np.r_[data.y_train, data.y_valid, data.y_test] > 0) == 4891


def test_the_catalogue_has_every_set_of_the_papers() -> None:
    named = [
        "ad",
        "rcv1",
        "rcv1_train",
        "gisette",
        "webspam",
        "dexter",
        "dorothea",
        "arcene",
        "sci_vs_talk",
    ]
    assert {*named, *SIZES} <= {*SPECS}
