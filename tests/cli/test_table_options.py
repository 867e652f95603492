"""The options for tables reach caches, checkpoints, clusters, searches and predictions."""

import pytest

import thresher
from support.files import called
from support.training_cases import lines, trained
from thresher.data.source import Source

pytest.importorskip("pyarrow", reason="needs the extra arrow")

from support.tables import csv_file, table_file

ROWS = [(i % 7 / 7 + i % 2, ("rome", "oslo", "bern")[i % 3], i % 2) for i in range(300)]
BARE = "".join(f"{x:.4f}|{city}|{y}\n" for x, city, y in ROWS)
OPTIONS = ["--label", "-1", "--delimiter", "|", "--no-header"]


def weights(model):
    return thresher.load(model).weights.tolist()


def test_caches(tmp_path):
    csv_file(tmp_path, BARE, "rows.csv")
    plain, _ = trained(tmp_path, "rows.csv", *OPTIONS, "--quiet", name="plain")
    cache = ["--cache", tmp_path / "rows.cache"]
    cached, _ = trained(tmp_path, "rows.csv", *OPTIONS, *cache, "--quiet", name="cached")
    assert weights(cached) == weights(plain)
    found = [lines(called("predict", model, tmp_path / "rows.csv")) for model in (plain, cached)]
    assert found[0] == found[1]
    _, done = trained(tmp_path, "rows.csv", *OPTIONS, *cache, name="again")
    assert "writing the cache" not in done.stderr
    _, done = trained(tmp_path, "rows.csv", *OPTIONS, "--ignore", "0", *cache, name="other")
    assert "writing the cache" in done.stderr


def test_a_cache_of_an_older_version_is_current(tmp_path, monkeypatch):
    """Options that are not set are not in the header of a cache."""
    csv_file(tmp_path, "x,y\n1,0\n2,1\n", "rows.csv")
    trained(tmp_path, "rows.csv", "--cache", tmp_path / "rows.cache", "--quiet")
    about = (tmp_path / "rows.cache").read_bytes()
    for name in (b"delimiter", b"quotes", b"label_separator", b'"header"'):
        assert name not in about


def test_resuming(tmp_path, monkeypatch):
    csv_file(tmp_path, BARE, "rows.csv")
    run = [*OPTIONS, "--rule", "ftrl", "--passes", "3"]
    whole, _ = trained(tmp_path, "rows.csv", *run, "--quiet", name="whole")
    model = tmp_path / "resumed"
    begin = ["train", tmp_path / "rows.csv", "-m", model, *run, "--quiet"]
    real, passes = Source.blocks, []

    def failing(self, *given, **options):
        passes.append(1)
        if len(passes) > 2:
            raise KeyboardInterrupt
        yield from real(self, *given, **options)

    monkeypatch.setattr(Source, "blocks", failing)
    called(*begin, "--every", "0.000001s", "--keep-checkpoint", code=130)
    monkeypatch.setattr(Source, "blocks", real)
    called("train", tmp_path / "rows.csv", "-m", model, "--resume", "--quiet")
    assert weights(model) == weights(whole)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_parts_of_a_cluster(tmp_path, name):
    if name == "rows.csv":
        csv_file(tmp_path, BARE, name)
        options = OPTIONS
    else:
        columns = dict(zip(("x", "city", "y"), map(list, zip(*ROWS, strict=True)), strict=True))
        table_file(tmp_path, columns, name, row_group_size=50)
        options = ["--label", "-1"]
    whole = ["--rule", "ftrl", "--workers", "0"]
    model, _ = trained(tmp_path, name, *options, *whole, "--quiet")
    found = lines(called("predict", model, tmp_path / name))
    assert found == [str(y) for _, _, y in ROWS]
    if name == "rows.parquet":
        trained(tmp_path, name, *options, *whole, "--parts", "3", "--quiet")


@pytest.mark.parametrize("command", ["tune", "discover", "compare"])
def test_searches(tmp_path, command):
    words = BARE.replace("|0\n", "|no\n").replace("|1\n", "|yes\n")
    path = csv_file(tmp_path, words, "rows.csv")
    own = {
        "tune": ["-m", tmp_path / "m", "--grid", "l1=0,0.1", "--folds", "2"],
        "discover": ["-m", tmp_path / "m"],
        "compare": ["--rules", "ftrl", "--orders", "1", "--folds", "2", "--bits", "8"],
    }[command]
    called(command, path, *OPTIONS, *own)
    if command == "tune":
        found = lines(called("predict", tmp_path / "m", path))
        assert found == [("no", "yes")[y] for _, _, y in ROWS]


def test_word_labels_of_a_cluster(tmp_path):
    csv_file(tmp_path, BARE.replace("|0\n", "|no\n").replace("|1\n", "|yes\n"), "rows.csv")
    model, _ = trained(tmp_path, "rows.csv", *OPTIONS, "--rule", "ftrl", "--workers", "0")
    assert thresher.load(model).classes.tolist() == ["no", "yes"]


def test_evaluation_reads_the_same_columns(tmp_path):
    path = csv_file(tmp_path, BARE, "rows.csv")
    model, _ = trained(tmp_path, "rows.csv", *OPTIONS, "--valid", path, "--quiet")
    page = tmp_path / "page.html"
    called("inspect", model, "--html", page, "--data", path)
    text = page.read_text()
    assert "header=False" in text
    assert "columns=" in text


@pytest.mark.parametrize("options", [["--text", "t"], ["--label", "x", "--no-header"]])
def test_options_of_tables_without_a_table(tmp_path, options):
    (tmp_path / "rows.vw").write_text("1 |a x\n-1 |a z\n" * 20)
    _, done = trained(tmp_path, "rows.vw", *options)
    words = ", ".join(
        "--header" if word == "--no-header" else word for word in options if word[:2] == "--"
    )
    assert f"{words}: no effect" in done.stderr
    assert "rows.vw has the format vw" in done.stderr
    _, done = trained(tmp_path, "rows.vw", name="plain")
    assert "no effect" not in done.stderr
