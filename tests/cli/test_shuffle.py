"""`--shuffle` in the shell: sorted files, pipes, caches, checkpoints and Ctrl-C."""

import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from support.files import called, environment, thresher
from thresher import load, scan

CHILD = """
import sys
from thresher.data import buckets, shuffled
shuffled.LIMIT, shuffled.BATCH, buckets.FEWEST = 100_000, 50_000, 8
from thresher.cli import main
main()
"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Return a folder of texts: sorted by label, the same mixed, and new ones."""
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    weights = rng.normal(size=2000)
    words = (rng.pareto(0.8, size=(5000, 20)) * 10).astype(int) % 2000
    scores = weights[words].sum(axis=1)
    labels = np.where(scores > np.median(scores), 1, -1)
    lines = np.array(
        [f"{label} |w " + " ".join(f"t{k}" for k in own) + "\n"
         for label, own in zip(labels, words, strict=True)]
    )  # fmt: skip
    by_label = np.argsort(-labels[:4000], kind="stable")
    (folder / "mixed.vw").write_text("".join(lines[:4000]))
    (folder / "sorted.vw").write_text("".join(lines[:4000][by_label]))
    (folder / "new.vw").write_text("".join(lines[4000:]))
    return folder


def accuracy(texts, model):
    blocks = list(scan(texts / "new.vw", bits=14).blocks())
    truth = np.concatenate([block.labels for block in blocks])
    return (load(model).predict(scan(texts / "new.vw", bits=14)) == truth).mean()


def trained(texts, folder, data, *options, **more):
    model = folder / "m.thresher"
    done = thresher("train", data, "--bits", "14", "-m", model, *options, **more)
    return accuracy(texts, model), done.stderr, model.read_bytes()


def test_sorted_texts(texts, tmp_path):
    """The issue: a coin flip that looks perfect. Now a warning, and --shuffle mends it."""
    mixed, silent, _ = trained(texts, tmp_path, texts / "mixed.vw")
    in_order, warned, _ = trained(texts, tmp_path, texts / "sorted.vw")
    shuffled, after, _ = trained(texts, tmp_path, texts / "sorted.vw", "--shuffle")
    assert "ordered by their labels" not in silent + after
    assert re.search(r"rows [\d,]+ to [\d,]+ of the first 4,000 have the label -?1, and", warned)
    assert "set --shuffle\n" in warned
    assert in_order < 0.65
    assert shuffled == pytest.approx(mixed, abs=0.03)
    assert mixed > 0.75


def test_a_sorted_pipe(texts, tmp_path):
    data = (texts / "sorted.vw").read_text()
    found, notes, _ = trained(texts, tmp_path, "-", "--shuffle", input=data)
    assert found > 0.75
    assert "a buffer of 65,536 rows, and rows that are much further apart stay apart" in notes
    short = ("--shuffle", "--shuffle-buffer", "100")
    found, notes, _ = trained(texts, tmp_path, "-", *short, input=data)
    assert "raise --shuffle-buffer above the length of such runs" in notes
    whole = ("--shuffle", "--cache", tmp_path / "c.cache")
    found, notes, _ = trained(texts, tmp_path, "-", *whole, input=data)
    assert found > 0.75
    assert "ordered" not in notes


def test_a_shuffled_cache_is_used_again(texts, tmp_path):
    cache = ("--shuffle", "--cache", tmp_path / "c.cache", "--passes", "2", "--rule", "ftrl")
    without = trained(texts, tmp_path, texts / "sorted.vw", *cache[:1], *cache[3:])
    first = trained(texts, tmp_path, texts / "sorted.vw", *cache)
    again = trained(texts, tmp_path, texts / "sorted.vw", *cache)
    assert "writing the cache" in first[1]
    assert "writing the cache" not in again[1]
    assert first[2] == again[2] == without[2]
    other = trained(texts, tmp_path, texts / "sorted.vw", *cache[1:])
    assert "shuffled was 1 and is not given" in other[1]


def test_tune_of_a_sorted_file(texts, tmp_path):
    arguments = ("--bits", "14", "-m", tmp_path / "m.thresher", "--grid", "l1=0.1,1,10")
    done = thresher("tune", texts / "sorted.vw", *arguments)
    assert done.stderr.count("ordered by their labels") == 1
    done = thresher("tune", texts / "sorted.vw", *arguments, "--shuffle")
    assert "ordered" not in done.stderr
    assert accuracy(texts, tmp_path / "m.thresher") > 0.75


def test_interrupted_and_resumed_on_disk(texts, tmp_path):
    """The same bytes; and no temporary file is left by Ctrl-C or after the run."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program = [sys.executable, "-c", CHILD, "train", str(texts / "sorted.vw"), "--shuffle",
               "--bits", "14", "--rule", "ftrl", "--passes", "40"]  # fmt: skip
    options = {"env": environment(TMPDIR=str(temporary)), "capture_output": True, "timeout": 120}
    whole, model = tmp_path / "whole.thresher", tmp_path / "m.thresher"
    done = subprocess.run([*program, "-m", str(whole)], **options)
    assert done.returncode == 0, done.stderr
    assert not list(temporary.iterdir())
    del options["capture_output"], options["timeout"]
    run = subprocess.Popen(
        [*program, "-m", str(model), "--every", "0s", "--json"], stdout=subprocess.PIPE, **options
    )
    for line in run.stdout:
        if b'"checkpoint"' in line:
            run.send_signal(signal.SIGINT)
            break
    run.communicate(timeout=60)
    assert run.returncode == 130
    assert not list(temporary.iterdir())
    done = subprocess.run(
        [*program, "-m", str(model), "--resume"], capture_output=True, timeout=120, **options
    )
    assert done.returncode == 0, done.stderr
    assert model.read_bytes() == whole.read_bytes()
    assert not list(temporary.iterdir())


def test_resume_takes_the_shuffle_from_the_checkpoint(texts, tmp_path):
    model = tmp_path / "m.thresher"
    base = ("train", str(texts / "mixed.vw"), "--bits", "14", "-m", str(model))
    for shuffle in ("--shuffle", "--shuffle-blocks"):
        options = (shuffle, "--rule", "ftrl", "--passes", "3", "--every", "0s", "--keep-checkpoint")
        called(*base, *options)
        whole = model.read_bytes()
        called(*base, "--resume")  # a run that has ended: only the model is written again
        assert model.read_bytes() == whole


def test_a_bad_buffer_is_refused(texts, tmp_path):
    done = thresher("train", texts / "mixed.vw", "-m", tmp_path / "m", "--shuffle-buffer", "0",
                    code=2)  # fmt: skip
    assert "--shuffle-buffer" in done.stderr
