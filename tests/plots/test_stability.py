"""`StabilityDisplay`: probabilities by name, over a parameter, by rank."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from support.plot_cases import THREE, X, Y, close_figures, drawn, legend  # noqa: F401
from thresher import (
    FTRLClassifier,
    ParameterError,
    StabilityDisplay,
    StabilitySelection,
    StabilizedClassifier,
    StreamingStabilitySelection,
)
from thresher.stability import stability_score

NAMES = [f"word{i}" for i in range(60)]


@pytest.fixture(scope="module")
def selector():
    estimator = FTRLClassifier(l1=50.0, passes=5)
    return StabilitySelection(estimator, pairs=5, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def streamed():
    return StreamingStabilitySelection(
        FTRLClassifier(passes=2),
        param_name="l1",
        param_values=[100.0, 5.0, 20.0],
        pairs=4,
        threshold=0.8,
        random_state=0,
    ).fit(X, Y)


def test_features_are_drawn_by_probability(selector):
    display = StabilityDisplay.from_estimator(selector, max_features=6, names=NAMES)
    top = selector.top(6)
    ticks = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert ticks == [NAMES[feature.name] for feature in top]
    shown = np.concatenate([display.line_.get_xdata(), display.others_.get_xdata()])
    np.testing.assert_allclose(shown, [feature.probability for feature in top])
    assert len(display.line_.get_xdata()) == len(selector.selected_) >= 2
    assert display.threshold_.get_xdata()[0] == selector.threshold
    assert display.ax_.get_xlabel() == "selection probability"
    assert display.ax_.get_ylabel() == f"first 6 of {len(display.names)} features"
    said = legend(display.ax_)
    assert said[0] == f"selected ({len(selector.selected_)})"
    assert said[-1] == "threshold 0.6"
    assert [StabilityDisplay.from_estimator(selector).names[i] for i in range(3)] == [
        feature.name for feature in top[:3]
    ]
    drawn(display.figure_)


def test_paths_over_the_values_of_a_parameter(streamed):
    display = StabilityDisplay.from_estimator(streamed)
    table = streamed.selection_probabilities_.toarray()[[1, 2, 0]]  # by increasing l1
    assert len(display.lines_) == len(streamed.selected_)
    order = [name for name, mine in zip(display.names, display.selected, strict=True) if mine]
    for feature, line in zip(order, display.lines_, strict=True):
        assert line.get_xdata().tolist() == [5.0, 20.0, 100.0]
        np.testing.assert_allclose(line.get_ydata(), table[:, feature])
    rest = [name for name, mine in zip(display.names, display.selected, strict=True) if not mine]
    segments = display.others_.get_segments()
    assert len(segments) == len(rest)
    np.testing.assert_allclose(segments[0][:, 1], table[:, rest[0]])
    assert display.ax_.get_xlabel() == "l1"
    assert display.ax_.get_xscale() == "log"
    assert display.threshold_.get_ydata()[0] == 0.8
    by_name = StabilityDisplay.from_estimator(streamed, kind="features")
    assert by_name.line_.get_xdata().max() == table.max()
    drawn(display.figure_)


def test_few_paths_have_names_and_values_may_be_words():
    shares = [[1.0, 0.2, 0.1], [0.9, 0.7, 0.0]]
    display = StabilityDisplay(
        shares, names=["a", "b", "c"], threshold=0.6, values=["hinge", "log"], param_name="loss"
    ).plot()
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["hinge", "log"]
    assert legend(display.ax_) == ["a", "b", "not selected (1)", "threshold 0.6"]


def test_names_are_shown_unchanged():
    shares, names = [[1.0, 0.8], [0.9, 0.7]], ["$x^{", "_id"]
    display = StabilityDisplay(shares, names=names, threshold=0.6, values=[1, 2]).plot()
    assert legend(display.ax_) == [r"\$x^{", " _id", "threshold 0.6"]
    drawn(display.figure_)  # raises an error if a name is taken for a formula
    drawn(display.plot(kind="features").figure_)


def test_a_display_of_a_stabilized_model():
    clf = StabilizedClassifier(target_nnz=4, random_state=0).fit(X, Y)
    display = StabilityDisplay.from_estimator(make_pipeline(clf), names=NAMES)
    chosen = {NAMES[i] for i in clf.model_.indices.tolist()}
    marked = {name for name, mine in zip(display.names, display.selected, strict=True) if mine}
    assert marked == chosen
    for name, share in zip(display.names, display.probabilities[0], strict=True):
        assert share == clf.model_.why(name, names=NAMES).selection_probability
    assert display.threshold == clf.model_.parameters["keep"]
    three = StabilizedClassifier(random_state=0).fit(X, THREE)
    with pytest.raises(ParameterError, match=r"label must be a class, one of \[0, 1, 2\]"):
        StabilityDisplay.from_model(three.model_)
    assert StabilityDisplay.from_model(three.model_, label=2).names
    with pytest.raises(ParameterError, match="stabilized rule"):
        StabilityDisplay.from_model(FTRLClassifier().fit(X, Y).model_)
    two = StabilizedClassifier(random_state=0).fit(X, Y).model_
    with pytest.raises(ParameterError, match="label must not be given"):
        StabilityDisplay.from_model(two, label="nonsense")
    display = StabilityDisplay([0.5, 0.4, 0.3], names=["two\nlines", "", "\u202eturned"]).plot()
    shown = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert shown == ["two lines", "''", "\ufffdturned"]


def test_supports_of_several_runs_and_their_kappa():
    supports = [[0, 1, 2], [0, 1], [0, 5]]
    display = StabilityDisplay.from_supports(supports, 60, kind="ranks", name="some")
    np.testing.assert_allclose(display.line_.get_xdata(), [1, 2, 3, 4])
    np.testing.assert_allclose(display.line_.get_ydata(), [1, 2 / 3, 1 / 3, 1 / 3])
    assert display.kappa == stability_score(supports, 60)
    again = StabilityDisplay.from_supports(
        [[0], [0]], 60, kind="ranks", name="same", ax=display.ax_
    )
    assert legend(again.ax_) == [f"some, kappa {display.kappa:.2f}", "same, kappa 1.00"]
    assert again.line_.get_color() != display.line_.get_color()
    assert len(StabilityDisplay.from_supports(supports, 60).line_.get_xdata()) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "pie"}, "kind must be one of features, paths, ranks"),
        ({"kind": "paths"}, "several values"),
        ({"max_features": 0}, "max_features must be >= 1"),
        ({"names": NAMES[:5]}, "names must be 60"),
    ],
)
def test_invalid_options(selector, options, message):
    with pytest.raises(ParameterError, match=message):
        StabilityDisplay.from_estimator(selector, **options)


def test_invalid_probabilities():
    for shares, options, message in (
        ([], {}, "not empty"),
        ([1.5], {}, r"in 0\.\.1"),
        ([0.5], {"names": ["a", "b"]}, "one entry per feature"),
        ([0.5], {"values": [1, 2]}, "values must be 1"),
    ):
        with pytest.raises(ParameterError, match=message):
            StabilityDisplay(shares, **options)
    with pytest.raises(ParameterError, match="empty"):
        StabilityDisplay.from_supports([[], []], 60)
