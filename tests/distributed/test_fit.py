"""`thresher.distributed.fit` without a cluster: data, results, errors."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import thresher
from support.distributed_rows import FITS, bits_of, rows_of, write_shards
from thresher.distributed import ContinueLater, fit
from thresher.errors import DataError, ModelFileError, ParameterError
from thresher.model.model import Progress
from thresher.training.records import mean_since


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("shards"), *rows_of())


def fitted(name, shards, **more):
    make, how = FITS[name]
    return fit(make(), shards, workers=0, **how, **more)


@pytest.mark.parametrize("name", FITS)
def test_accuracy(name, shards):
    X, y = rows_of(1)
    estimator = fitted(name, shards)
    assert estimator.score(X, y) > (0.65 if name == "paper" else 0.8)
    assert estimator.classes_.tolist() == [0, 1]
    assert estimator.n_features_in_ == 60
    assert estimator.model_.history[-1].examples > 0
    assert estimator.n_iter_ >= 1
    same = estimator.model_.raw(thresher.scan(shards))
    assert np.allclose(same[:60, 0], estimator.decision_function(rows_of()[0][:60]), atol=1e-5)


@pytest.mark.parametrize("name", FITS)
def test_a_stopped_run_is_resumed_to_the_same_bits(name, shards, tmp_path):
    seen = []
    whole = fitted(name, shards, watch=seen.append)
    for stop in sorted({1, max(1, len(seen) // 2)}):
        folder = tmp_path / f"{name}-{stop}"
        with pytest.raises(ContinueLater):
            fitted(name, shards, checkpoint=folder, watch=lambda report, n=stop: report.stage >= n)
        resumed = fitted(name, shards, checkpoint=folder, resume=True, keep_checkpoint=True)
        assert bits_of(resumed) == bits_of(whole)
        assert [r[:3] for r in resumed.history_] == [r[:3] for r in whole.history_]
        again = fitted(name, shards, checkpoint=folder, resume=True)  # nothing is left to do
        assert bits_of(again) == bits_of(whole)


@pytest.mark.parametrize("name", FITS)
def test_a_fitted_estimator_can_be_used_as_any_other(name, shards):
    X, y = rows_of()
    estimator = fitted(name, shards)
    copy = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(copy.decision_function(X), estimator.decision_function(X))
    assert not hasattr(clone(estimator), "classes_")
    if name == "average":
        before = bits_of(estimator)
        estimator.partial_fit(X, y)
        assert bits_of(estimator) != before
    else:
        with pytest.raises(ParameterError, match="cannot continue, because it was trained on a"):
            estimator.partial_fit(X, y)
    assert estimator.fit(X, y).score(X, y) > 0.5


def test_the_model_is_saved_and_loaded(shards, tmp_path):
    estimator = fitted("robust", shards)
    estimator.model_.save(tmp_path / "model")
    model = thresher.load(tmp_path / "model")
    assert np.array_equal(model.weights, estimator.model_.weights)
    why = model.why(int(model.indices[0]))
    assert why.documents > 0
    assert why.selection_probability > 0.5


@pytest.mark.parametrize("format", ["cache", "parquet"])
def test_files_of_other_formats_give_the_same(format, shards, tmp_path):
    from thresher.cli.commands.convert import convert

    for number in range(4):
        file = shards.replace("*", str(number))
        convert([file, str(tmp_path / f"{number}.{format}")], None, {}, quiet=True)
    found, same = (
        fit(thresher.FTRLClassifier(passes=3, shuffle=False), files, workers=0)
        for files in (str(tmp_path / f"*.{format}"), shards)
    )
    if format == "cache":
        assert bits_of(found) == bits_of(same)
    assert found.score(*rows_of(1)) > 0.8


def test_one_file_is_divided_into_parts(shards, tmp_path):
    whole = tmp_path / "whole.svm"
    files = [Path(shards.replace("*", str(n))) for n in range(4)]
    whole.write_text("".join(file.read_text() for file in files))
    found = fitted("average", whole, parts=4)
    assert found.score(*rows_of(1)) > 0.8
    assert bits_of(found) == bits_of(fitted("average", str(whole), parts=4))
    assert bits_of(found) != bits_of(fitted("average", str(whole), parts=3))


def test_names_of_features_are_found(tmp_path):
    for number in range(3):
        text = "1 |ad sport |user anna\n-1 |ad loan |user bob\n" * (20 + number)
        (tmp_path / f"{number}.vw").write_text(text)
    estimator = thresher.FTRLClassifier(store="hashed", passes=2)
    fit(estimator, str(tmp_path / "*.vw"), workers=0)
    assert {f.name for f in estimator.model_.top(4)} == {
        "ad^sport", "ad^loan", "user^anna", "user^bob",
    }  # fmt: skip
    assert estimator.n_features_in_ == 2**64


@pytest.mark.parametrize("name", ["average", "robust", "columns"])
def test_several_classes(name, tmp_path):
    X, y = rows_of(3, rows=400, classes=3)
    shards = write_shards(tmp_path / "rows", X, y)
    whole = fitted(name, shards)
    assert whole.classes_.tolist() == [0, 1, 2]
    assert whole.score(X, y) > 0.75
    stages = []
    with pytest.raises(ContinueLater):  # in the second output, if they are trained separately
        fitted(
            name, shards, checkpoint=tmp_path / "c",
            watch=lambda r: stages.append(r.stage) or stages.count(1) == 2 or len(stages) > 4,
        )  # fmt: skip
    assert bits_of(fitted(name, shards, checkpoint=tmp_path / "c", resume=True)) == bits_of(whole)


def test_features_with_names_need_a_hashed_store(tmp_path):
    (tmp_path / "rows.vw").write_text("1 |ad sport\n-1 |ad loan\n" * 20)
    with pytest.raises(ParameterError, match="features with names need store='hashed', or bits="):
        fit(thresher.FTRLClassifier(), tmp_path / "rows.vw", workers=0)


def test_the_survey_decides_values_that_are_auto(tmp_path):
    for number in range(3):
        text = "1 |ad sport |user anna\n-1 |ad loan |user bob\n" * (20 + number)
        (tmp_path / f"{number}.vw").write_text(text)
    for how, store in (({}, "hashed"), ({"bits": 8}, "dense")):
        auto, given = (
            fit(
                thresher.FTRLClassifier(passes=2, random_state=0, **params),
                str(tmp_path / "*.vw"), workers=0, **how,
            )
            for params in ({"alpha": "auto", "store": "auto"}, {"alpha": 0.71, "store": store})
        )  # fmt: skip
        assert bits_of(auto) == bits_of(given)
        assert auto.model_.parameters["alpha"] == 0.71
        assert auto.model_.parameters["store"] == store
        auto.partial_fit(thresher.scan(tmp_path / "0.vw", **how))
        assert auto.alpha == auto.store == "auto"


def test_penalties_of_a_rate_that_is_auto(tmp_path):
    """Features without updates shrink by the rate that the rows decided, too."""
    lines = ["1 1:3 2:3\n", "-1 1:3 3:3\n"] + ["1 2:3\n", "-1 3:3\n"] * 30
    for number in range(2):
        (tmp_path / f"{number}.svm").write_text("".join(lines))
    auto, given = (
        fit(
            thresher.AdaGradClassifier(l1=0.01, alpha=alpha, passes=1, random_state=0),
            str(tmp_path / "*.svm"), workers=0, rounds=5,
        )
        for alpha in ("auto", 0.33)
    )  # fmt: skip
    assert auto.model_.parameters["alpha"] == 0.33
    assert bits_of(auto) == bits_of(given)


def test_rows_with_any_number_of_labels(tmp_path):
    X, y = rows_of(3, classes=3)
    shards = write_shards(tmp_path, X, [f"{c},7" if c else "" for c in y])
    model = thresher.FTRLClassifier(passes=4, random_state=0)
    fit(model, shards, workers=0, multilabel=True)
    assert model.classes_.tolist() == [1, 2, 7]
    found = model.predict(X)
    assert sp.issparse(found)
    assert (found.toarray()[:, 2] == (y > 0)).mean() > 0.9
    assert model.model_.parameters["multilabel"] is True
    assert fit(model, write_shards(tmp_path, X, y), workers=0).predict(X).shape == (400,)


@pytest.mark.parametrize(
    "kind",
    [
        thresher.TruncatedGradientClassifier,
        thresher.AveragedSGDClassifier,
        thresher.DualAveragingClassifier,
    ],
)
def test_partial_fit_continues_after_the_cluster(kind, shards):
    """The next record, and the watch for divergence, use only the rows that follow."""
    X, y = rows_of(1, rows=848)
    model = fit(kind(passes=3, random_state=0), shards, workers=0)
    assert model.history_[-1].examples == 3 * 400
    before = model._fitted.outputs.tally
    model.partial_fit(X, y)
    assert [record.examples for record in model.history_[-2:]] == [1200, 2048]
    assert model.history_[-1].loss == mean_since(model._fitted.outputs.tally, before)
    assert model._fitted.watch.see(Progress(2148, 1e15, None, 0.0, 0.0)).startswith(
        "training diverges: the mean loss of the last 100 rows"
    )


@pytest.mark.parametrize("kind", [thresher.FTRLClassifier, thresher.TruncatedGradientClassifier])
def test_several_classes_continue_after_the_cluster(kind, shards, tmp_path):
    """Each class goes on with a learner of its own, also from a file, as two classes would."""
    X, y = rows_of(classes=3)
    files = write_shards(tmp_path / "three", X, y)
    model = fit(kind(passes=2, random_state=0), files, workers=0, rounds=3)
    assert model.classes_.tolist() == [0, 1, 2]
    model.model_.save(tmp_path / "model", state=True)
    loaded = thresher.load(tmp_path / "model").estimator()
    copied = pickle.loads(pickle.dumps(model))
    X_more, y_more = rows_of(1, classes=3)
    for each in (model, loaded, copied):
        each.partial_fit(X_more, y_more)
    assert bits_of(loaded) == bits_of(copied) == bits_of(model)
    # The learner of class 0 is that of a run for "class 0, or not".
    files = write_shards(tmp_path / "two", X, (y == 0).astype(int))
    single = fit(kind(passes=2, random_state=0), files, workers=0, rounds=3)
    single.partial_fit(X_more, (y_more == 0).astype(int))
    np.testing.assert_array_equal(single.coef_[0], model.coef_[0])


def test_a_perceptron_of_a_cluster_says_why_it_cannot_continue(shards):
    X, y = rows_of()
    model = fit(thresher.MarginPerceptronClassifier(random_state=0), shards, "average", workers=0)
    with pytest.raises(ParameterError, match="because it was trained on a cluster, and its learn"):
        model.partial_fit(X, y)


def test_there_is_no_certificate(shards):
    def clf(**params):
        return thresher.TruncatedGradientClassifier(random_state=0, passes=2, **params)

    with pytest.raises(
        ParameterError, match=r"certify cannot be used .* sums that hold for one str"
    ):
        fit(clf(certify=True), shards, workers=0)
    model = fit(clf(), shards, workers=0)
    X, y = rows_of(1)
    assert model.partial_fit(X, y).model_.certificates == ()
    with pytest.raises(ParameterError, match="certify was False when training started"):
        model.set_params(certify=True).partial_fit(X, y)


def test_a_perceptron_has_no_levels(shards):
    assert fitted("columns", shards).level_models_ == {}


def test_a_seed_that_was_not_given_is_that_of_the_checkpoint(shards, tmp_path):
    with pytest.raises(ContinueLater, match=r"stopped after stage 2; the checkpoint is"):
        fit(thresher.FTRLClassifier(passes=4), shards, workers=0, checkpoint=tmp_path / "c",
            watch=lambda report: report.stage == 2)  # fmt: skip
    model = thresher.FTRLClassifier(passes=4)
    fit(model, shards, workers=0, checkpoint=tmp_path / "c", resume=True)
    assert model.history_[-1].examples == 4 * 400


def test_a_regression(tmp_path):
    X, _ = rows_of()
    y = np.round(np.asarray(X[:, :3].sum(axis=1)).ravel(), 4)
    shards = write_shards(tmp_path, X, y)
    model = fit(thresher.TruncatedGradientRegressor(passes=30, eta0=0.3), shards, workers=0)
    assert model.score(X, y) > 0.9


def test_balanced_weights_use_the_counts_of_the_survey(tmp_path):
    X, y = rows_of()
    keep = (y == 0) | (np.arange(len(y)) % 4 == 0)
    shards = write_shards(tmp_path, X[keep], y[keep])
    share = keep.sum() / 2
    weights = {0: share / (y[keep] == 0).sum(), 1: share / (y[keep] == 1).sum()}
    balanced, given = (
        fit(thresher.FTRLClassifier(class_weight=w, random_state=0), shards, workers=0)
        for w in ("balanced", weights)
    )
    assert bits_of(balanced) == bits_of(given)


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "how", "message"),
    [
        (thresher.CoordinateDescentClassifier(), {}, "cannot be trained on a cluster"),
        (thresher.FTRLClassifier(), {"mode": "stages"}, "mode must be average; got 'stages'"),
        (thresher.FTRLClassifier(), {"mode": "best"}, "mode must be one of stages, average, col"),
        (thresher.StabilizedClassifier(), {"mode": "columns"}, "mode must be stages"),
        (thresher.StabilizedClassifier(), {"rounds": 2}, "rounds is an option of mode='average'"),
        (thresher.FTRLClassifier(), {"rounds": 0}, "rounds must be a whole number of 1 or more"),
        (thresher.FTRLClassifier(), {"batch": 9}, "batch is an option of mode='columns'"),
        (thresher.FTRLClassifier(), {"every": 0}, "every must be a whole number of 1 or more"),
        (thresher.FTRLClassifier(), {"every": 2}, "every needs checkpoint"),
        (thresher.FTRLClassifier(), {"partz": 2}, "'partz' is not an option of fit or of reading"),
        (thresher.FTRLClassifier, {}, r"estimator must be an object, as in FTRLClassifier\(\)"),
        (thresher.FTRLClassifier(), {"workers": -1}, "workers must be"),
        (thresher.FTRLClassifier(), {"resume": True}, "resume=True needs checkpoint, the folder"),
        (thresher.FTRLClassifier(), {"parts": 0}, "parts must be a whole number of 1 or more"),
        (thresher.FTRLClassifier(), {"parts": 10**6}, "parts must be at most"),
        (thresher.FTRLClassifier(alpha=-1), {}, "alpha must be"),
        (thresher.FTRLClassifier(warm_start=True), {}, "warm_start=True cannot be used"),
        (thresher.FTRLClassifier(callback=print), {}, "callback is not called on a cluster"),
        (thresher.StabilizedClassifier(paths=4), {"parts": 3}, "parts must be at most 2"),
        (thresher.AveragedSGDClassifier(center=True), {}, "center"),
    ],
)
def test_invalid_options_are_errors_at_once(estimator, how, message, shards):
    with pytest.raises(ParameterError, match=message):
        fit(estimator, shards, **{"workers": 0, **how})
    assert not hasattr(estimator, "classes_")


def test_bad_rows_are_named_by_file_and_line(tmp_path):
    shards = write_shards(tmp_path / "rows", *rows_of())
    broken = tmp_path / "rows" / "rows-2.svm"
    lines = broken.read_text().splitlines()
    lines[37] = "1 5:x"
    broken.write_text("\n".join(lines))
    for how in ({}, {"parts": 7}):
        with pytest.raises(DataError, match=r"rows-2\.svm:38:5: "):
            fit(thresher.FTRLClassifier(), shards, workers=0, checkpoint=tmp_path / "c", **how)
        assert not os.path.exists(tmp_path / "c" / "manifest.json")


def test_changed_data_are_an_error(tmp_path):
    X, y = rows_of()
    shards = write_shards(tmp_path / "rows", X, y)
    folder = tmp_path / "c"
    with pytest.raises(ContinueLater):
        fitted("robust", shards, checkpoint=folder, watch=lambda report: True)
    file = tmp_path / "rows" / "rows-1.svm"
    before = file.read_text()
    with pytest.raises(ModelFileError, match="holds the checkpoint of another run"):
        fitted("robust", shards, checkpoint=folder)
    with pytest.raises(ModelFileError, match="target_nnz was 8 in the run that wrote it"):
        fit(thresher.StabilizedClassifier(target_nnz=9, paths=8, passes=2, random_state=1),
            shards, workers=0, checkpoint=folder, resume=True)  # fmt: skip
    file.write_text(before.replace("1:", "2:", 1) if "1:" in before[:8] else before[::-1])
    os.utime(file, ns=(1, 1))
    with pytest.raises(DataError, match=r"rows-1\.svm"):
        fitted("robust", shards, checkpoint=folder, resume=True)
    file.write_text(before)
    assert fitted("robust", shards, checkpoint=folder, resume=True).score(X, y) > 0.7


def test_a_resumed_run_has_the_ranges_of_its_checkpoint(shards, tmp_path):
    """The number of workers does not change the ranges."""
    folder = tmp_path / "c"
    with pytest.raises(ContinueLater):
        fitted("average", shards, checkpoint=folder, watch=lambda report: True)
    assert json.loads((folder / "manifest.json").read_text())["options"]["ranges"] == 1
    assert bits_of(fitted("average", shards, checkpoint=folder, resume=True)) == bits_of(
        fitted("average", shards)
    )


def test_a_run_without_a_seed_can_be_resumed(shards, tmp_path):
    def clf():
        return thresher.FTRLClassifier(passes=3, shuffle="each")

    with pytest.raises(ContinueLater):
        fit(clf(), shards, workers=0, checkpoint=tmp_path / "c", watch=lambda report: True)
    found = fit(clf(), shards, workers=0, checkpoint=tmp_path / "c", resume=True)
    assert np.isfinite(found.model_.weights).all()
    assert found.n_iter_ == 3
