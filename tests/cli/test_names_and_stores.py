"""The command line: tags, feature names, bits, stores and interactions."""

import json

import numpy as np

import thresher
from support.files import called
from support.training_cases import lines, trained


def test_tags_follow_predictions(folder):
    model, _ = trained(folder, "rows.vw")
    for kind in ("label", "probability", "raw"):
        done = lines(called("predict", model, folder / "rows.vw", "--as", kind))
        assert [line.split()[1] for line in done] == [f"row{n}" for n in range(400)]
        assert all(np.isfinite(float(line.split()[0])) for line in done)
    out = folder / "out.txt"
    done = called("predict", model, folder / "rows.vw", "--as", "raw", "-o", out)
    assert done.stdout == ""
    assert done.stderr == f"400 predictions -> {out}\n"
    assert out.read_text().splitlines() == lines(
        called("predict", model, "-", "--as", "raw", stdin=(folder / "rows.vw").read_bytes())
    )


def test_stores_and_bits(folder):
    hashed, _ = trained(folder, "rows.vw", name="hashed.thresher")
    folded, done = trained(folder, "rows.vw", "--bits", "16", name="folded.thresher")
    assert "different features" not in done.stdout
    assert "in 65,536 weights (16 bits)" in done.stdout
    small, done = trained(folder, "rows.vw", "--bits", "3", name="small.thresher")
    assert "with --bits 10, at most 5 % would" in done.stderr
    models = [thresher.load(model) for model in (hashed, folded, small)]
    assert [model.n_features for model in models] == [2**64, 2**16, 8]
    assert [model.parameters["store"] for model in models] == ["hashed", "dense", "dense"]
    assert models[2].nnz <= 8
    assert sorted(models[0].names.values()) == sorted(models[1].names.values())
    by_name = [{feature.name: feature.weight for feature in m.top(99)} for m in models[:2]]
    assert by_name[0] == by_name[1]
    numbered, _ = trained(folder, "rows.svm", "--store", "hashed", name="numbered.thresher")
    dense, _ = trained(folder, "rows.svm", name="dense.thresher")
    assert thresher.load(numbered).weights.tobytes() == thresher.load(dense).weights.tobytes()


def test_interactions_have_names(folder):
    data = folder / "pairs.vw"
    rng = np.random.default_rng(0)
    rows = []
    for a, b in rng.integers(0, 2, (400, 2)):
        rows.append(f"{1 if a == b else -1} |ad x{a} |user y{b}\n")
    data.write_text("".join(rows))
    plain, _ = trained(folder, "pairs.vw", "--l1", "0.01", name="plain.thresher")
    crossed, _ = trained(folder, "pairs.vw", "-q", "au", "--passes", "5", "--l1", "0.01")
    truth = [row.split()[0] for row in rows]
    right = [
        np.mean([a == b for a, b in zip(lines(called("predict", m, data)), truth, strict=True)])
        for m in (plain, crossed)
    ]
    assert right[0] < 0.8  # at best three of the four pairs
    assert right[1] == 1.0
    names = {
        entry["name"] for entry in json.loads(called("inspect", crossed, "--json").stdout)["top"]
    }
    assert {"ad^x0*user^y0", "ad^x1*user^y0", "ad^x0", "user^y1"} <= names
    bare = called("train", data, "-m", folder / "bare.thresher", "--no-names", "--quiet")
    assert bare.stdout == bare.stderr == ""
    assert thresher.load(folder / "bare.thresher").names is None


def test_a_pipe_gives_the_same_names_as_a_file(folder):
    model, _ = trained(folder, "rows.vw", name="file.thresher")
    piped, _ = trained(folder, "-", stdin=(folder / "rows.vw").read_bytes())
    assert thresher.load(piped).names == thresher.load(model).names
    assert piped.read_bytes() == model.read_bytes()


def test_main_runs_any_command_after_another(folder):
    """Only the command that is called is built; the others must still be there afterwards."""
    model = folder / "twice.thresher"
    called("train", folder / "rows.vw", "-m", model, "--quiet")
    assert "weight" in called("inspect", model).stdout
    assert "predict" in called("--help").stdout
