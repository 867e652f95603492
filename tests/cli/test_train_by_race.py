"""`thresher train --rule auto`."""

import pytest

import thresher
from support.files import called, svmlight
from support.training_cases import events, lines, trained


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("race")
    svmlight(folder / "rows.svm", rows=200, features=20)
    svmlight(folder / "classes.svm", rows=200, features=20, classes=(1, 2, 5))
    return folder


def test_the_race_is_shown_and_the_model_written(small):
    page = small / "race.html"
    model, done = trained(small, "rows.svm", "--rule", "auto", "--html", page, "--seed", "3")
    loaded = thresher.load(model)
    shown = done.stdout
    assert "(chosen)" in shown
    assert f"{loaded.nnz:,} nonzero weights" in lines(done)[-2]
    assert lines(done)[-1] == f"page -> {page}"
    assert "ftrl, 5 passes" in page.read_text()
    assert "1/1" in done.stderr  # candidates are shown as they are tried
    again = thresher.SparseClassifier(random_state=3).fit(thresher.scan(small / "rows.svm"))
    assert again.model_.nnz == loaded.nnz
    assert (again.model_.weights == loaded.weights).all()


def test_json_and_quiet(small):
    _, done = trained(small, "rows.svm", "--rule", "auto", "--json", "--budget", "2s")
    found = events(done)
    assert found[-1]["event"] == "done"
    assert [e["number"] for e in found if e["event"] == "candidate"][:2] == [1, 2]
    _, done = trained(small, "rows.svm", "--rule", "auto", "--quiet", "--tolerance", "0")
    assert done.stdout == done.stderr == ""


def test_tasks(small):
    model, _ = trained(small, "classes.svm", "--rule", "auto", "--multiclass", "--quiet")
    assert thresher.load(model).classes.tolist() == [1, 2, 5]
    model, _ = trained(small, "classes.svm", "--rule", "auto", "--loss", "squared", "--quiet")
    assert thresher.load(model).classes is None


def test_standard_input_needs_a_cache_for_a_race(small):
    rows = (small / "rows.svm").read_bytes()
    options = ["--rule", "auto", "--format", "svmlight"]
    _, done = trained(small, "-", *options, stdin=rows)
    assert "can be read only once" in done.stdout
    _, done = trained(small, "-", *options, "--cache", small / "rows.cache", stdin=rows)
    assert "coordinate-descent" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rule", "auto", "--passes", "3"], "--passes cannot be used with --rule auto"),
        (["--rule", "auto", "--l1", "3"], "--l1 cannot be used with --rule auto"),
        (["--rule", "auto", "--resume"], "--resume cannot be used with --rule auto"),
        (["--rule", "auto", "--loss", "hinge"], "--loss must be logistic or squared"),
        (["--rule", "auto", "--budget", "soon"], "--budget must be a time"),
        (["--rule", "auto", "--budget", "0s"], "--budget must be"),
        (["--budget", "5s"], "--budget needs --rule auto"),
        (["--html", "page.html"], "--html needs --rule auto"),
        (["--rule", "auto", "--workers", "0"], "auto"),
    ],
)
def test_refusals(small, options, words):
    done = called("train", small / "rows.svm", "-m", small / "no.thresher", *options, code=2)
    assert words in done.stderr
    assert not (small / "no.thresher").exists()
