"""The command line from end to end: train, predict, inspect, convert."""

import json
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import THRESHER, called, svmlight, vw
from thresher.rules import RULES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    svmlight(folder / "rows.svm")
    svmlight(folder / "other.svm", seed=1)
    svmlight(folder / "classes.svm", classes=(1, 2, 5))
    vw(folder / "rows.vw")
    return folder


def trained(folder, data, *options, name="model.thresher", stdin=b""):
    """Train; return the model's path and what was printed."""
    model = folder / name
    data = "-" if data == "-" else folder / data
    return model, called("train", data, "-m", model, *options, stdin=stdin)


def lines(done):
    return done.stdout.splitlines()


def events(done):
    return [json.loads(line) for line in lines(done)]


# ---- all rules, all parameters -------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_every_rule(folder, rule):
    options = ["--rule", rule, "--seed", "3", "--passes", "5", "--quiet"]
    options += ["--n-nonzero", "40"] if rule == "hard-threshold" else []
    model, _ = trained(folder, "rows.svm", *options)
    loaded = thresher.load(model)
    assert loaded.parameters["rule"] == rule
    if "random_state" in RULES[rule].parameters:
        assert loaded.parameters["random_state"] == 3
    assert 0 < loaded.nnz <= 60
    assert loaded.n_features == 60
    predicted = np.array(lines(called("predict", model, folder / "rows.svm")), float)
    _, y = load_svmlight_file(str(folder / "rows.svm"))
    assert np.mean(np.sign(predicted) == y) > 0.8
    shown = called("inspect", model, "--top", "3").stdout
    assert rule in shown


@pytest.mark.parametrize(
    ("rule", "options", "params"),
    [
        ("truncated-gradient", ["--gravity", "0.01", "--eta0", "0.2"], {"gravity": 0.01}),
        ("truncated-gradient", ["--average", "--l2", "1e-3"], {"average": True, "l2": 1e-3}),
        ("truncated-gradient", ["--no-fit-intercept"], {"fit_intercept": False}),
        ("forward-backward", ["--l1", "0.001", "--dtype", "float64"], {"l1": 0.001}),
        ("ftrl", ["--l1", "2", "--alpha", "0.3", "--beta", "2"], {"l1": 2, "alpha": 0.3}),
        ("ftrl", ["--target-nnz", "7"], {"target_nnz": 7}),
        ("dual-averaging", ["--l1", "0.01", "--loss", "hinge"], {"loss": "hinge"}),
        ("margin-perceptron", ["--margin", "2"], {"margin": 2}),
        ("mirror-descent", ["--l1", "0.01"], {"l1": 0.01}),
        ("hard-threshold", ["--n-nonzero", "4"], {"n_nonzero": 4}),
        ("coordinate-descent", ["--l1", "0.1"], {"l1": 0.1}),
        ("stabilized", ["--paths", "4", "--keep", "0.9"], {"paths": 4, "keep": 0.9}),
    ],
)
def test_options_reach_the_learner(folder, rule, options, params):
    model, _ = trained(folder, "rows.svm", "--rule", rule, *options, "--quiet")
    plain, _ = trained(folder, "rows.svm", "--rule", rule, "--quiet", name="plain.thresher")
    changed, default = thresher.load(model), thresher.load(plain)
    for name, value in params.items():
        assert changed.parameters[name] == value
        assert default.parameters[name] != value
    assert (changed.weights.tobytes(), changed.intercept.tobytes()) != (
        default.weights.tobytes(),
        default.intercept.tobytes(),
    )
    if "target_nnz" in params or "n_nonzero" in params:
        assert changed.nnz <= next(iter(params.values()))


def test_text_to_model_is_csr_to_model(folder):
    """The command line learns what the estimator learns."""
    X, y = load_svmlight_file(str(folder / "rows.svm"))
    options = ["--rule", "truncated-gradient", "--gravity", "0.001", "--passes", "3", "--quiet"]
    model, _ = trained(folder, "rows.svm", *options)
    clf = thresher.TruncatedGradientClassifier(gravity=0.001, passes=3, shuffle=False, tol=None)
    loaded, fitted = thresher.load(model), clf.fit(X, y.astype(int)).model_
    assert loaded.weights.tobytes() == fitted.weights.tobytes()
    assert loaded.intercept.tobytes() == fitted.intercept.tobytes()
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


# ---- validation and passes -----------------------------------------------------------------------


def test_validation_keeps_the_best_pass(folder):
    """Steps that are too long: the loss on the validation rows falls, then rises."""
    options = ["--valid", str(folder / "other.svm"), "--patience", "2", "--json"]
    options += ["--rule", "truncated-gradient", "--eta0", "3", "--decay", "1", "--gravity", "0"]
    model, done = trained(folder, "rows.svm", "--passes", "60", *options)
    losses = [event["loss"] for event in events(done) if event["event"] == "pass"]
    best = int(np.argmin(losses))
    assert len(losses) < 60
    assert best < len(losses) - 1
    Z, z = load_svmlight_file(str(folder / "other.svm"))
    kept = np.mean(np.log1p(np.exp(-z * thresher.load(model).decision_function(Z))))
    assert kept == pytest.approx(losses[best], rel=1e-5)
    assert events(done)[-1]["valid_loss"] == losses[best]


def test_passes_and_shuffling(folder):
    models = [
        trained(folder, "rows.svm", "--quiet", *options)[0].read_bytes()
        for options in (
            ["--passes", "2"],
            ["--passes", "3"],
            ["--passes", "3", "--shuffle"],
            ["--passes", "3", "--shuffle", "--seed", "1"],
            ["--passes", "3", "--shuffle", "--seed", "1", "--threads", "1"],
        )
    ]
    assert len(set(models)) == 4
    assert models[3] == models[4]


def test_a_cache_gives_the_same_model(folder):
    cache = folder / "rows.cache"
    plain, _ = trained(folder, "rows.vw", "--passes", "2", name="plain.thresher")
    model, done = trained(folder, "rows.vw", "--passes", "2", "--cache", str(cache))
    assert "writing the cache" in done.stderr
    assert thresher.load(model).weights.tobytes() == thresher.load(plain).weights.tobytes()
    assert thresher.load(model).names == thresher.load(plain).names
    before = model.read_bytes()
    _, done = trained(folder, "rows.vw", "--passes", "2", "--cache", str(cache))
    assert "making" not in done.stderr
    assert model.read_bytes() == before
    _, done = trained(folder, "rows.vw", "--bits", "8", "--cache", str(cache))
    assert "bits was null and is 8" in done.stderr
    piped, _ = trained(
        folder, "-", "--passes", "2", "--cache", str(cache), stdin=(folder / "rows.vw").read_bytes()
    )
    assert thresher.load(piped).weights.tobytes() == thresher.load(plain).weights.tobytes()
    assert thresher.load(piped).names == thresher.load(plain).names


# ---- classes -------------------------------------------------------------------------------------


def test_multiclass(folder):
    model, _ = trained(folder, "classes.svm", "--multiclass", "--passes", "3")
    data = folder / "classes.svm"
    _, y = load_svmlight_file(str(data))
    labels = lines(called("predict", model, data))
    assert set(labels) <= {"1", "2", "5"}
    assert np.mean(np.array(labels, float) == y) > 0.7
    shares = np.loadtxt(lines(called("predict", model, data, "--as", "probability")))
    assert shares.shape == (400, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    assert np.array([1, 2, 5])[shares.argmax(axis=1)].tolist() == [int(label) for label in labels]
    raw = np.loadtxt(lines(called("predict", model, data, "--as", "raw")))
    np.testing.assert_allclose(
        raw, thresher.load(model).decision_function(thresher.scan(data)), rtol=1e-8
    )
    piped, _ = trained(
        folder,
        "-",
        "--classes",
        "1,2,5",
        *("--multiclass", "--quiet"),
        stdin=data.read_bytes(),
        name="piped.thresher",
    )
    once, _ = trained(folder, "classes.svm", "--multiclass", "--quiet", name="once.thresher")
    assert thresher.load(piped).weights.tobytes() == thresher.load(once).weights.tobytes()
    told = called(
        "train",
        "-",
        "-m",
        piped,
        "--multiclass",
        "--rule",
        "margin-perceptron",
        code=2,
        stdin=data.read_bytes(),
    )
    assert told.stderr.startswith("several classes from standard input need --classes")


def test_class_weights(folder):
    plain, _ = trained(folder, "rows.svm", "--quiet", name="plain.thresher")
    heavy, _ = trained(folder, "rows.svm", "--class-weight", "1:10", "--quiet")
    X, _ = load_svmlight_file(str(folder / "rows.svm"))
    ones = [np.mean(thresher.load(model).predict(X) == 1) for model in (plain, heavy)]
    assert ones[1] > ones[0] + 0.1
    for wrong, words in (
        ("1:x", "CLASS:WEIGHT"),
        ("7:2", "which are not classes"),
        ("1", "CLASS:W"),
    ):
        done = called("train", folder / "rows.svm", "-m", heavy, "--class-weight", wrong, code=2)
        assert words in done.stderr


def test_multilabel(folder):
    data = folder / "lists.svm"
    data.write_text(
        "".join(f"{i % 3},{10 + i % 2} {i % 3 + 1}:1 {i % 2 + 5}:1\n" for i in range(300))
    )
    model, _ = trained(folder, "lists.svm", "--multilabel", "--passes", "2")
    found = [set(line.split(",")) for line in lines(called("predict", model, data))]
    assert found == [{str(i % 3), str(10 + i % 2)} for i in range(300)]
    shares = lines(called("predict", model, data, "--as", "probability"))[0].split(",")
    assert {entry.split(":")[0] for entry in shares} == {"0", "10"}
    assert all(float(entry.split(":")[1]) > 0.5 for entry in shares)


def test_two_classes_as_zero_and_one(folder):
    data = folder / "zeros.svm"
    data.write_text((folder / "rows.svm").read_text().replace("-1 ", "0 "))
    model, _ = trained(folder, "zeros.svm")
    assert set(lines(called("predict", model, data))) == {"0", "1"}


def test_numbers_to_predict(folder):
    model, _ = trained(folder, "rows.svm", "--loss", "squared", "--passes", "5")
    predicted = np.array(lines(called("predict", model, folder / "rows.svm")), float)
    _, y = load_svmlight_file(str(folder / "rows.svm"))
    assert np.mean((predicted - y) ** 2) < 0.5 * np.var(y)
    told = called("predict", model, folder / "rows.svm", "--as", "probability", code=2)
    assert "needs a classifier" in told.stderr


def test_words_of_a_table(folder):
    data = folder / "table.csv"
    data.write_text("age,city,label\n" + "31,Rome,cat\n4,Oslo,dog\n7,Bern,eel\n" * 30)
    model, _ = trained(folder, "table.csv", "--multiclass", "--passes", "20")
    assert lines(called("predict", model, data))[:3] == ["cat", "dog", "eel"]
    unlabelled = folder / "new.csv"
    unlabelled.write_text("age,city\n4,Oslo\n")
    assert lines(called("predict", model, unlabelled)) == ["dog"]


def test_labels_and_weights_are_not_needed_to_predict(folder):
    data, new = folder / "weighted.csv", folder / "new.csv"
    data.write_text("id,age,kind,w\n" + "7,31,1,0.5\n8,4,-1,2\n" * 30)
    named = ["--label", "kind", "--weight", "w", "--ignore", "id"]
    for bits in ([], ["--bits", "1"]):  # so few that any other column would be one of the features
        model, _ = trained(folder, "weighted.csv", *named, *bits)
        new.write_text("age\n31\n4\n")
        expected = called("predict", model, new, "--as", "raw").stdout
        assert len(expected.split()) == 2
        for text in ("age,w,kind,id\n31,-5,?,a\n4,none,100,b\n", "w,age\n,31\n9,4\n"):
            new.write_text(text)
            assert called("predict", model, new, "--as", "raw").stdout == expected
        new.write_text("kind,age,other,w\n100,31,3,4\n100,4,3,4\n")
        other = called("predict", model, new, "--as", "raw", "--label", "other")
        assert other.stdout == expected


# ---- names, bits, stores, interactions -----------------------------------------------------------


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
    assert "with 10 bits, 5 % would share one" in done.stdout
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
    assert right[0] < 0.8  # three of four pairs at best
    assert right[1] == 1.0
    names = {
        entry["name"] for entry in json.loads(called("inspect", crossed, "--json").stdout)["top"]
    }
    assert {"ad^x0*user^y0", "ad^x1*user^y0", "ad^x0", "user^y1"} <= names
    bare = called("train", data, "-m", folder / "bare.thresher", "--no-names", "--quiet")
    assert bare.stdout == bare.stderr == ""
    assert thresher.load(folder / "bare.thresher").names is None


def test_names_of_a_pipe(folder):
    model, _ = trained(folder, "rows.vw", name="file.thresher")
    piped, _ = trained(folder, "-", stdin=(folder / "rows.vw").read_bytes())
    assert thresher.load(piped).names == thresher.load(model).names
    assert piped.read_bytes() == model.read_bytes()


# ---- what is shown -------------------------------------------------------------------------------


def test_inspect(folder):
    model, _ = trained(folder, "rows.vw")
    shown = called("inspect", model, "--top", "5").stdout
    assert shown.splitlines()[0].split() == ["rule", "ftrl"]
    assert len(shown.split("\n\n")[1].splitlines()) == 6
    facts = json.loads(called("inspect", model, "--json", "--top", "2").stdout)
    assert facts["rule"] == "ftrl"
    assert facts["nonzero weights"] == thresher.load(model).nnz
    assert len(facts["top"]) == 2
    best = facts["top"][0]
    why = called("inspect", model, "--why", best["name"]).stdout
    assert best["name"] in why
    (reason,) = json.loads(called("inspect", model, "--why", best["name"], "--json").stdout)
    assert reason["weight"] == best["weight"]
    told = called("inspect", model, "--why", "nothing", code=1).stderr
    assert told.startswith("no feature with nonzero weight has the name 'nothing'")
    assert "feature" not in called("inspect", model, "--top", "0").stdout.split("parameters")[1]


def test_why_of_a_stabilized_model(folder):
    model, _ = trained(folder, "rows.vw", "--rule", "stabilized", "--quiet")
    best = json.loads(called("inspect", model, "--json").stdout)["top"][0]
    assert best["name"].startswith("word^w")
    (reason,) = json.loads(called("inspect", model, "--why", best["name"], "--json").stdout)
    assert reason["selection_probability"] == 1.0
    words = (folder / "rows.vw").read_text().splitlines()
    having = sum(best["name"].removeprefix("word^") in line.split() for line in words)
    assert reason["documents"] == having


def test_json_events(folder):
    _, done = trained(folder, "rows.svm", "--passes", "3", "--json", "--every", "0s")
    assert done.stderr == ""
    found = events(done)
    kinds = [event["event"] for event in found]
    assert set(kinds) == {"progress", "pass", "checkpoint", "done"}
    assert kinds.count("pass") == 3
    assert kinds[-1] == "done"
    for event in found:
        if event["event"] == "progress":
            assert {"examples", "pass", "loss", "mean_loss", "nonzeros", "seconds"} < set(event)
            assert {"rows_per_second", "done", "left"} < set(event)
    last = found[-1]
    assert last["examples"] == 1200
    assert last["model"].endswith("model.thresher")
    assert 0 < last["mean_loss"] < 0.7
    assert not (folder / "model.thresher.checkpoint").exists()


def test_json_of_a_run_that_diverges_is_json(folder):
    """Numbers that JSON has no word for are null."""
    done = subprocess.run(
        [
            *[*THRESHER, "train", folder / "rows.svm", "-m", folder / "wild.thresher", "--json"],
            *["--loss", "squared", "--eta0", "50", "--passes", "40"],
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    for line in done.stdout.splitlines():
        json.loads(line, parse_constant=lambda word: pytest.fail(word))


def test_quiet_is_quiet(folder):
    _, done = trained(folder, "rows.svm", "--quiet")
    assert done.stdout == done.stderr == ""
    out = folder / "quiet.txt"
    done = called("predict", folder / "model.thresher", folder / "rows.svm", "-o", out, "--quiet")
    assert done.stdout == done.stderr == ""
    done = called("convert", folder / "rows.svm", folder / "quiet.vw", "--quiet")
    assert done.stdout == done.stderr == ""


def test_lines_in_a_pipe(folder):
    _, done = trained(folder, "rows.svm", "--valid", str(folder / "other.svm"), "--passes", "2")
    told = done.stderr.splitlines()
    assert told[0].split() == ["examples", "pass", "loss", "nonzeros", "rows/s", "done", "left"]
    assert told[-1].startswith("pass 2: loss on the validation rows 0.")
    assert "\x1b" not in done.stderr
    assert "800 examples" in done.stdout


# ---- convert -------------------------------------------------------------------------------------


def test_convert(folder):
    done = called("convert", folder / "rows.svm", folder / "rows.parquet")
    assert done.stderr == f"400 rows -> {folder}/rows.parquet (parquet)\n"
    called("convert", folder / "rows.parquet", folder / "back.svm.zst")
    called("convert", folder / "back.svm.zst", folder / "again", "--to", "svmlight")
    assert (folder / "again").read_text() == (folder / "rows.svm").read_text()
    one, _ = trained(folder, "rows.svm", "--quiet", name="one.thresher")
    two, _ = trained(folder, "rows.parquet", "--quiet", name="two.thresher")
    assert thresher.load(one).weights.tobytes() == thresher.load(two).weights.tobytes()
    called("convert", folder / "rows.svm", folder / "other.svm", folder / "both.cache", "--quiet")
    assert sum(block.rows for block in thresher.scan(folder / "both.cache").blocks()) == 800
    told = called("convert", folder / "rows.svm", folder / "rows.what", code=2).stderr
    assert "the format is not clear from the name" in told
