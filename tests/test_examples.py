"""Run every example in an empty folder, and check what it prints."""

import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import thresher
from support.files import EXAMPLES, printed
from support.slices import sliced

# Scripts of the shell; tests/test_gallery.py runs the others.
SCRIPTS = sorted(p.name for p in EXAMPLES.glob("*.py") if not p.name.startswith("plot_"))


def test_all_examples_are_short_and_listed_in_their_readme():
    scripts = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert len(scripts) > len(SCRIPTS) > 5
    listed = re.findall(r"^\| `(\w+\.py)`", (EXAMPLES / "README.md").read_text(), re.M)
    assert sorted(listed) == scripts
    for script in scripts:
        text = (EXAMPLES / script).read_text()
        assert len(text.splitlines()) <= 85
        assert text.startswith('"""')
        assert f"python examples/{script}\n" in text or script not in SCRIPTS
        imported = re.findall(r"^(?:from|import) (thresher\S*)", text, re.M)
        assert set(imported) <= {"thresher"}  # the public package only


def test_text_classification_finds_the_words_of_each_topic(tmp_path):
    out = printed("text_classification.py", tmp_path)
    assert float(re.search(r"accuracy on 225 other texts: (\S+)", out)[1]) > 0.9
    words = dict(re.findall(r"^(\w+): (.*)$", out, re.M))
    assert set(words["cooking"].split(", ")) >= {"oven", "flour", "butter"}
    assert set(words["sailing"].split(", ")) >= {"mast", "anchor"}
    assert not set(words["astronomy"].split(", ")) & {"oven", "mast", "the"}


def test_text_classification_of_two_folders(tmp_path):
    for topic, word in (("cats", "purr"), ("dogs", "bark")):
        (tmp_path / "texts" / topic).mkdir(parents=True)
        for number in range(30):
            text = f"they {word} at the {'door' if number % 2 else 'gate'}"
            (tmp_path / "texts" / topic / f"{number}.txt").write_text(text)
    out = printed("text_classification.py", tmp_path, tmp_path / "texts")
    assert "accuracy on 15 other texts: 1.000" in out
    assert re.search(r"^cats: purr", out, re.M)
    assert re.search(r"^dogs: bark", out, re.M)


def test_click_prediction_finds_the_features_that_matter(tmp_path):
    out = printed("click_prediction.py", tmp_path)
    losses = [float(loss) for loss in re.findall(r"^ *[\d,]+   (\S+)$", out, re.M)]
    assert losses[-1] < losses[0] < 0.7
    assert float(re.search(r"AUC on 10,000 rows of another day: (\S+)", out)[1]) > 0.75
    weights = re.findall(r"^  (\S+) +([+-]\S+)$", out, re.M)
    found = {name: float(weight) for name, weight in weights[:5]}
    assert set(found) == {
        "page^site_spam", "ad^ad_7", "ad^ad_13", "page^site_news", "page^hour_3",
    }  # fmt: skip
    assert found["ad^ad_7"] > 1 > -1 > found["ad^ad_13"]


def test_feature_discovery_finds_mostly_true_features(tmp_path):
    out = printed("feature_discovery.py", tmp_path)
    counts = re.findall(r"(\d+) features, (\d+) of 15 true ones, (\d+) false", out)
    once, often, discovered = [tuple(map(int, count)) for count in counts]
    assert once == (50, 15, 35)
    assert often[1] >= 13
    assert discovered[1] >= 13
    assert discovered[2] <= 4
    assert float(re.search(r"expected: (\S+)", out)[1]) < 3
    assert "the same with shuffled labels:    0 features" in out
    lines = re.findall(r"^(\d+) +(?:raises|lowers) .* (yes|no)$", out, re.M)
    assert len(lines) == 20
    assert all(int(feature) < 15 for feature, _ in lines[:13])
    assert [mark for _, mark in lines].count("yes") == min(20, discovered[0])
    assert "beyond what the other features explain" in out


def test_out_of_core_resume_gives_the_same_bytes(tmp_path):
    out = printed("out_of_core_resume.py", tmp_path)
    assert "4 files, 4.7 MB" in out
    assert "exit code 130, interrupted after" in out
    assert out.splitlines()[-1] == "the same, byte for byte"
    night, whole = (tmp_path / f"{name}.thresher" for name in ("night", "whole"))
    assert night.read_bytes() == whole.read_bytes()
    assert not (tmp_path / "night.thresher.checkpoint").exists()
    assert thresher.load(night).history[-1].examples == 20 * 40_000


def test_explain_and_export_gives_the_same_predictions(tmp_path):
    out = printed("explain_and_export.py", tmp_path)
    assert re.search(r"^income +\+\S+ +1.32 +\+", out, re.M)
    assert re.search(r"SQLite: 100% of 4,000 labels are equal, scores differ by at most \de-1", out)
    assert "ONNX: the model is in model.onnx" in out or "no ONNX" in out
    assert "Changed sign" in (tmp_path / "changes.html").read_text()
    assert "predicted_probability" in (tmp_path / "predictions.sql").read_text()


def test_sparse_regression_finds_a_sparse_model_and_draws_it(tmp_path):
    out = printed("sparse_regression.py", tmp_path)
    assert sum(line.endswith("chosen") for line in out.splitlines()) == 1
    found = dict(re.findall(r"^ *(best|chosen): +(\d+) features", out, re.M))
    errors = [float(error) for error in re.findall(r"error on other rows (\S+)", out)]
    assert int(found["chosen"]) < int(found["best"]) < 40
    assert max(errors) < 0.7  # the noise alone has an error of 0.49
    assert "     0 +1.0" in out
    if "no picture" not in out:
        assert (tmp_path / "sparse_regression.png").stat().st_size > 5_000


@pytest.mark.parametrize("script", sliced(["sparse_regression.py", "feature_discovery.py"], 0))
def test_examples_read_the_files_they_are_given(script, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 30))
    y = X[:, 4] + 0.1 * rng.normal(size=600)
    y = np.sign(y) if script.startswith("feature") else y
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    out = printed(script, tmp_path, tmp_path / "rows.svm")
    if script.startswith("feature"):
        assert "600 rows, 30 features" in out
        assert re.search(r"^4 +raises .* yes$", out, re.M)
    else:
        assert re.search(r"^ +4 \+0\.9|^ +4 \+1\.0", out, re.M)


@pytest.mark.parametrize(
    "name", [SCRIPTS[0], *(pytest.param(name, marks=pytest.mark.soak) for name in SCRIPTS[1:])]
)
def test_help_shows_the_docstring_of_the_script(name, tmp_path):
    assert f"python examples/{name}" in printed(name, tmp_path, "--help")


def test_click_prediction_refuses_a_single_file(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "click_prediction.py"), "mine.vw"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "give two files" in done.stderr
    assert not list(tmp_path.iterdir())


def test_two_models_are_evaluated_on_other_rows(tmp_path):
    out = printed("evaluate_models.py", tmp_path)
    assert "4,000 rows, two classes" in out
    found = re.search(r"^roc_auc: (\S+), between (\S+) and (\S+)$", out, re.M)
    difference, low, high = map(float, found.groups())
    assert low <= difference <= high
    assert float(re.search(r"^ROC AUC +(\S+)", out, re.M)[1]) > 0.6
    for page in ("evaluation.html", "comparison.html"):
        assert "<svg" in (tmp_path / page).read_text()


def test_daily_training_gives_the_weights_of_one_run(tmp_path):
    out = printed("daily_training.py", tmp_path)
    assert "the same weights as of one run, byte for byte" in out
    scores = [float(score) for score in re.findall(r"accuracy before it is learned (\S+)", out)]
    assert len(scores) == 3
    assert min(scores) > 0.8
    sizes = [int(size.replace(",", "")) for size in re.findall(r"([\d,]+) bytes", out)]
    assert sizes[-1] < min(sizes[:-1])
