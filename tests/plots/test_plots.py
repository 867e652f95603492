"""Displays draw the numbers of estimators."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC

import thresher
from support.plot_cases import THREE, X, Y, close_figures, drawn, legend, plt  # noqa: F401
from thresher import (
    CoordinateDescentClassifier,
    DualAveragingClassifier,
    ExponentDisplay,
    FeatureDensityDisplay,
    FTRLClassifier,
    LearningCurveDisplay,
    OnePassSearchCV,
    ParameterError,
    SparsityPath,
    SparsityPathDisplay,
    StabilityDisplay,
    StabilitySelection,
    StabilizedClassifier,
)
from thresher.model.model import Progress
from thresher.plots import style
from thresher.stability import selected_by_density

DOCS = Path(__file__).resolve().parents[2] / "docs"
GRAVITIES = [0.001, 0.005, 0.01, 0.2]
UNFITTED = {
    SparsityPathDisplay: SparsityPath(DualAveragingClassifier()),
    StabilityDisplay: StabilizedClassifier(),
    LearningCurveDisplay: FTRLClassifier(),
    ExponentDisplay: FTRLClassifier(),
}


@pytest.fixture(scope="module")
def path():
    return SparsityPath(DualAveragingClassifier(passes=5, random_state=0), GRAVITIES).fit(X, Y)


# ---- error against nonzeros ----------------------------------------------------------------------


def test_a_path_display_has_the_numbers_of_the_path(path):
    display = SparsityPathDisplay.from_estimator(path)
    points = display.points_.get_offsets()
    np.testing.assert_allclose(points[:, 0], path.nonzeros_)
    np.testing.assert_allclose(points[:, 1], path.errors_)
    edge = list(path.frontier_.efficient)
    np.testing.assert_allclose(display.line_.get_xdata(), path.nonzeros_[edge])
    np.testing.assert_allclose(display.line_.get_ydata(), path.errors_[edge])
    bars = display.errorbar_[2][0].get_segments()
    spans = [(bar[1, 1] - bar[0, 1]) / 2 for bar in bars]
    np.testing.assert_allclose(spans, path.standard_errors_)
    best, chosen = path.best_index_, path.chosen_index_
    assert best != chosen
    assert display.best_.get_xydata().tolist() == [[path.nonzeros_[best], path.errors_[best]]]
    assert display.chosen_.get_xydata().tolist() == [[path.nonzeros_[chosen], path.errors_[chosen]]]
    limit = path.errors_[best] + path.standard_errors_[best]
    assert display.limit_.get_ydata()[0] == pytest.approx(limit)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("nonzero weights", "error rate")
    said = legend(display.ax_)
    assert said[0] == "frontier"
    assert f"best: {path.nonzeros_[best]:,} (l1={path.best_gravity_:g})" in said
    assert drawn(display.figure_).std() > 0


def test_several_paths_in_one_figure(path):
    figure, ax = plt.subplots()
    one = SparsityPathDisplay.from_estimator(path, name="one", ax=ax)
    two = SparsityPathDisplay([5, 50], [0.4, 0.2]).plot(ax, name="two")
    assert one.ax_ is two.ax_ is ax
    assert two.figure_ is figure
    assert one.line_.get_color() != two.line_.get_color()
    assert one.line_.get_linestyle() != two.line_.get_linestyle()
    assert one.line_.get_marker() != two.line_.get_marker()
    assert legend(ax) == ["one", "two", "best", "sparsest within one s.e."]
    assert two.limit_ is two.chosen_ is two.errorbar_ is None
    assert SparsityPathDisplay.from_estimator(path, ax=ax, color="red").line_.get_color() == "red"


def test_a_search_display_has_means_over_splits():
    grid = {"l1": [1.0, 30.0, 100.0], "alpha": [0.1, 1.0]}
    search = OnePassSearchCV(
        FTRLClassifier(passes=2), grid, cv=3, scoring=["accuracy", "neg_log_loss"], refit="accuracy"
    ).fit(X, Y)
    display = SparsityPathDisplay.from_estimator(search)
    points = display.points_.get_offsets()
    np.testing.assert_allclose(points[:, 0], search.nonzeros_.mean(axis=1))
    np.testing.assert_allclose(points[:, 1], 1 - search.cv_results_["mean_test_accuracy"])
    spreads = [dot.spread for dot in display.frontier.dots]
    wanted = search.cv_results_["std_test_accuracy"] / np.sqrt(2)  # 3 folds
    np.testing.assert_allclose(spreads, wanted)
    assert display.ax_.get_ylabel() == "error rate"
    assert display.frontier.dots[0].name == "alpha=0.1, l1=1"
    other = SparsityPathDisplay.from_estimator(search, metric="neg_log_loss")
    assert other.ax_.get_ylabel() == "log loss"
    with pytest.raises(ParameterError, match=r"metric must be one of .*accuracy, neg_log_loss"):
        SparsityPathDisplay.from_estimator(search, metric="auc")


def test_failed_models_are_not_drawn_and_the_axis_includes_zero():
    display = SparsityPathDisplay([0, 10, 2000], [0.5, 0.1, np.nan], [0.01, np.nan, np.nan]).plot()
    assert display.points_.get_offsets().tolist() == [[0, 0.5], [10, 0.1]]
    assert display.ax_.get_xscale() == "symlog"
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()][:2] == ["0", "1"]
    assert legend(display.ax_)[-1] == "best: 10"
    with pytest.raises(ParameterError, match="at least one finite number"):
        SparsityPathDisplay([1], [np.nan])
    with pytest.raises(ParameterError, match="must have the same length"):
        SparsityPathDisplay([1, 2], [0.5])


# ---- learning curves -----------------------------------------------------------------------------


def test_a_learning_curve_has_the_numbers_of_the_history():
    clf = FTRLClassifier(passes=5, l1=5.0, random_state=0).fit(X, Y, eval_set=(X, Y))
    display = LearningCurveDisplay.from_estimator(clf)
    history = clf.history_
    np.testing.assert_allclose(display.line_.get_xdata(), [one.examples for one in history])
    np.testing.assert_allclose(display.line_.get_ydata(), [one.loss for one in history])
    valid = [(one.examples, one.valid_loss) for one in history if one.valid_loss is not None]
    np.testing.assert_allclose(display.valid_line_.get_xydata(), valid)
    nonzeros = [(one.examples, one.nonzeros) for one in history if one.nonzeros is not None]
    np.testing.assert_allclose(display.nonzeros_line_.get_xydata(), nonzeros)
    assert display.ax_.get_xscale() == display.nonzeros_ax_.get_xscale() == "log"
    assert display.ax_.get_ylabel() == "logistic loss"
    assert display.nonzeros_ax_.get_xlabel() == "examples"
    assert legend(display.ax_) == ["before learning each row", "validation"]
    drawn(display.figure_)


def test_several_learners_in_one_figure():
    one = LearningCurveDisplay.from_estimator(FTRLClassifier().fit(X, Y), name="FTRL")
    two = LearningCurveDisplay.from_model(
        DualAveragingClassifier().fit(X, Y).model_, name="dual averaging", ax=one.axes_
    )
    assert two.axes_ == one.axes_
    assert legend(two.ax_) == ["FTRL", "dual averaging"]
    assert len(two.nonzeros_ax_.lines) == 2
    assert two.line_.get_color() == two.nonzeros_line_.get_color() != one.line_.get_color()
    _, ax = plt.subplots()
    alone = LearningCurveDisplay.from_estimator(FTRLClassifier().fit(X, Y), ax=ax)
    assert alone.ax_ is ax
    assert alone.nonzeros_ax_ is None
    assert ax.get_xlabel() == "examples"
    with pytest.raises(ParameterError, match="one Axes or two; got 3"):
        LearningCurveDisplay([1], [0.5]).plot([ax, ax, ax])


def test_learning_curves_of_solvers_of_several_classes_and_of_short_records():
    solver = CoordinateDescentClassifier(l1=0.05).fit(X, Y)
    assert LearningCurveDisplay.from_estimator(solver).ax_.get_ylabel() == "objective"
    three = StabilizedClassifier(random_state=0).fit(X, THREE)
    display = LearningCurveDisplay.from_estimator(three)
    assert np.isnan(display.line_.get_xdata()).sum() == 2
    short = [
        Progress(n, 0.1 * k, 5, 0.0, 1.0) for k, n in enumerate((1000, 2000, 2010, 3000, 3001), 1)
    ]
    line = LearningCurveDisplay.from_history(short).line_
    np.testing.assert_allclose(line.get_xdata(), [1000, 2000, 3001])
    means = [0.1, 0.2, (10 * 0.3 + 990 * 0.4 + 0.5) / 1001]
    np.testing.assert_allclose(line.get_ydata(), means)
    drawn(display.figure_)
    with pytest.raises(ParameterError, match="empty"):
        LearningCurveDisplay.from_history([])
    with pytest.raises(ParameterError, match="same length"):
        LearningCurveDisplay([1, 2], [0.5])
    with pytest.raises(ParameterError, match="finite"):
        LearningCurveDisplay([1, 2], [np.nan, np.inf])


# ---- density and exponents -----------------------------------------------------------------------


def test_a_density_display_has_the_numbers_of_the_bins():
    rows = sp.random(500, 300, 0.05, "csr", random_state=0)
    rows = rows @ sp.diags(np.r_[np.zeros(20), np.ones(280)])
    labels = rows[:, 20:60].toarray().sum(axis=1) > 0.9
    clf = FTRLClassifier(l1=2.0, random_state=0).fit(rows, labels)
    display = FeatureDensityDisplay.from_estimator(clf, rows, bins=4)
    bins = selected_by_density(rows, clf.model_, 4)
    points = display.points_.get_offsets()
    middle = np.sqrt(bins.edges[:-1] * bins.edges[1:])
    np.testing.assert_allclose(points[:, 0], middle)
    np.testing.assert_allclose(points[:, 1], bins.selected_share)
    large = bins.feature_share > 0.05
    ratios = display.points_.get_sizes()[large] / bins.feature_share[large]
    np.testing.assert_allclose(ratios, ratios[0])
    peer = make_pipeline(MaxAbsScaler(), SGDClassifier(penalty="l1", random_state=0))
    other = FeatureDensityDisplay.from_estimator(
        peer.fit(rows, labels), rows, bins=4, name="peer", ax=display.ax_
    )
    mask = peer[-1].coef_[0] != 0
    wanted = selected_by_density(rows, mask, 4).selected_share
    np.testing.assert_allclose(other.line_.get_ydata(), wanted)
    assert legend(other.ax_)[0] == "peer"
    peer[-1].sparsify()
    again = FeatureDensityDisplay.from_estimator(peer, rows, bins=4, ax=display.ax_)
    np.testing.assert_allclose(again.line_.get_ydata(), wanted)
    assert "10% of features" in legend(other.ax_)
    from_zero = FeatureDensityDisplay.from_support(rows, [0, 30], bins=[0, 0.01, 1])
    assert from_zero.points_.get_offsets()[0, 0] == 0.005
    drawn(other.figure_)
    with pytest.raises(ParameterError, match="neither model_, coef_ nor selected_"):
        FeatureDensityDisplay.from_estimator(MaxAbsScaler().fit(rows), rows)
    with pytest.raises(ParameterError, match="at least one bin"):
        FeatureDensityDisplay([0.1], [np.nan], [0.0])
    with pytest.raises(ParameterError, match="must be DensityBins"):
        FeatureDensityDisplay.from_bins([1, 2])


def test_a_density_display_of_stability_selection():
    estimator = FTRLClassifier(l1=50.0, passes=5)
    selector = StabilitySelection(estimator, pairs=3, random_state=0).fit(X, Y)
    display = FeatureDensityDisplay.from_estimator(selector, X)
    wanted = len(selector.selected_) / X.shape[1]
    assert display.points_.get_offsets().tolist() == [[1.0, wanted]]


def test_an_exponent_display_has_the_counts_of_the_weights():
    weights = np.array([4.0, -5.0, 1.0, 0.0, 2.0**-25, 2.0**-60])
    display = ExponentDisplay.from_weights(weights)
    values, edges, _ = display.stairs_.get_data()
    assert edges[0] == -60.5
    assert edges[-1] == 2.5
    assert values.sum() == 5
    assert (values[-1], values[-3], values[0]) == (2, 1, 1)
    spread = thresher.health.exponents(weights)
    assert display.lost_single == pytest.approx(1 - spread.within_single)
    assert display.lost_double == pytest.approx(1 - spread.within)
    assert display.single_.get_xdata()[0] == 2 - 22 - 0.5
    assert display.double_.get_xdata()[0] == 2 - 51 - 0.5
    assert legend(display.ax_) == [
        "weights (5)",
        "single precision loses 40%",
        "double precision loses 20%",
    ]
    clf = FTRLClassifier(random_state=0).fit(X, Y)
    other = ExponentDisplay.from_estimator(clf, name="FTRL", ax=display.ax_)
    assert other.double_ is None
    assert f"FTRL ({clf.model_.nnz})" in legend(other.ax_)
    assert other.ax_.get_ylim()[1] > values.max()
    drawn(other.figure_)
    with pytest.raises(ParameterError, match="there are no nonzero weights"):
        ExponentDisplay.from_weights([0.0])


# ---- all displays --------------------------------------------------------------------------------


@pytest.mark.parametrize("display", UNFITTED, ids=lambda display: display.__name__)
def test_estimators_must_be_fitted_and_of_the_right_class(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(UNFITTED[display])
    for wrong in (SVC(), FTRLClassifier, 3):
        with pytest.raises(ParameterError, match=f"{display.__name__}: estimator must be"):
            display.from_estimator(wrong)


def test_from_model_needs_a_model():
    for display in (LearningCurveDisplay, ExponentDisplay, StabilityDisplay):
        with pytest.raises(ParameterError, match="model must be"):
            display.from_model(3)


def test_the_error_names_matplotlib_if_it_is_missing(monkeypatch, path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (
        lambda: SparsityPathDisplay.from_estimator(path),
        lambda: LearningCurveDisplay([1, 2], [0.5, 0.4], [3, 4]).plot(),
        lambda: StabilityDisplay([0.5]).plot(),
    ):
        with pytest.raises(ImportError, match=r"pip install 'thresher\[plot\]'"):
            draw()


def test_importing_thresher_does_not_import_matplotlib():
    code = """if True:
        import sys, thresher
        print([thresher.SparsityPath, thresher.StabilityDisplay, thresher.plots.style] and "ok")
        print("matplotlib" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ok", "False"]


def test_series_differ_in_colour_marker_and_line():
    looks = [style.series(i) for i in range(7)]
    for kind in ("color", "marker", "linestyle"):
        assert len({str(look[kind]) for look in looks}) == 7


def test_round_numbers_on_logarithmic_axes():
    for low, high in ((0.003, 0.02), (1e-6, 1e3), (0.11, 0.19)):
        _, ax = plt.subplots()
        ax.plot([low, high], [0, 1])
        style.logarithmic(ax, "x")
        ticks = ax.get_xticks()
        assert 3 <= len(ticks) <= 10
        assert low * 0.99 <= min(ticks)
        assert max(ticks) <= high * 1.01


def test_numbers_of_narrow_axes_do_not_overlap():
    figure, row = plt.subplots(1, 3, figsize=(6.4, 2.4))
    for ax in row:
        LearningCurveDisplay([4000, 10_000, 30_000], [0.5, 0.4, 0.3]).plot(ax)
    drawn(figure)
    for ax in row:
        boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
        assert len(boxes) >= 2
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_the_documentation_shows_every_display_and_every_image():
    page = (DOCS / "plots.md").read_text()
    shown = re.findall(r"\]\(plots/(\S+\.png)\)", page)
    shown += re.findall(r"\]\(docs/plots/(\S+\.png)\)", (DOCS.parent / "README.md").read_text())
    assert sorted(shown) == sorted(path.name for path in (DOCS / "plots").glob("*.png"))
    for name in thresher.plots.__all__:
        assert f"## {name}: " in page
        assert getattr(thresher, name) is getattr(thresher.plots, name)
