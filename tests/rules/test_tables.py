"""The tables of losses and rules: they agree with the core, and no other code tests names."""

from __future__ import annotations

import ast
import importlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import thresher
from thresher import _core, estimators
from thresher.certificates import loss_constants
from thresher.errors import ParameterError
from thresher.estimators import estimator_class
from thresher.losses import (
    ANY_LABEL,
    CLASSIFIER_LOSSES,
    LOSSES,
    PROBABILITY_LOSSES,
    REGRESSOR_LOSSES,
    check_labels,
)
from thresher.model import links
from thresher.rules import RULES
from thresher.rules.core_args import core_parameters, stabilized_parameters
from thresher.rules.matrix_rules import MATRIX_RULES
from thresher.rules.streaming_rules import STREAMING_RULES

SOURCE = Path(thresher.__file__).parent
CORE = SOURCE.parents[1] / "cpp" / "thresher"
EPSILON, QUANTILE = 0.3, 0.8


def values_of(loss: str, predictions: np.ndarray, label: float) -> tuple[np.ndarray, np.ndarray]:
    labels = np.full(len(predictions), label)
    return _core.loss_values(loss, EPSILON, QUANTILE, predictions, labels)


def labels_of(loss: str) -> tuple[float, ...]:
    spec = LOSSES[loss]
    smallest, largest = spec.label_range
    values = tuple(y for y in (-1.5, 0.0, 0.4, 1.0, 3.0) if smallest <= y <= largest)
    return (spec.low, 1.0) if "classifier" in spec.tasks else values


def defaults(rule: str, **chosen: object) -> dict[str, object]:
    task = RULES[rule].tasks[0]
    values = {n: p.default_for(task) for n, p in RULES[rule].parameters.items()}
    rate = RULES[rule].rate_from_rows  # its "auto" needs rows
    return values | ({rate: 1.0} if rate else {}) | chosen


# ---- losses --------------------------------------------------------------------------------------


def test_the_core_and_the_table_have_the_same_losses() -> None:
    named = re.findall(r'\{"(\w+)", [\d., ]+\}', (CORE / "loss/losses.hpp").read_text())
    assert sorted(named) == sorted(LOSSES)
    for name, loss in LOSSES.items():
        assert loss.name == name
        assert np.isfinite(values_of(name, np.zeros(1), 1.0)[0]).all()


@pytest.mark.parametrize("loss", REGRESSOR_LOSSES)
def test_the_degree_says_how_a_loss_grows_with_its_units(loss: str) -> None:
    p, y, s = np.array([-2.0, 0.3, 1.1, 5.0]), np.array([1.0, 0.4, 1.0, 0.5]), 8.0
    plain = _core.loss_values(loss, 0.25, 0.3, p, y)[0]
    scaled = _core.loss_values(loss, s * 0.25, 0.3, s * p, s * y)[0]
    degree = LOSSES[loss].degree
    grows = [d for d in (1, 2) if np.allclose(scaled, s**d * plain)]
    assert grows == ([degree] if degree else [])


@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
def test_losses_of_classes_pull_to_the_side_of_the_label(loss: str) -> None:
    at = np.array([LOSSES[loss].decision_at])
    assert values_of(loss, at, LOSSES[loss].low)[1][0] > 0 > values_of(loss, at, 1.0)[1][0]


@pytest.mark.parametrize("loss", REGRESSOR_LOSSES)
def test_losses_of_values_are_least_at_the_label(loss: str) -> None:
    raw = np.linspace(-4.0, 4.0, 8001)
    for label in (y for y in labels_of(loss) if y > 0):
        values = values_of(loss, raw, label)[0]
        best = links.values(raw[values <= values.min() + 1e-9], loss)
        assert best.min() - 5e-3 <= label <= best.max() + 5e-3


def test_losses_with_probabilities() -> None:
    assert set(PROBABILITY_LOSSES) >= {"logistic", "clipped_square"}
    assert not set(PROBABILITY_LOSSES) & {"hinge", "squared_hinge", "poisson"}


@pytest.mark.parametrize("loss", LOSSES)
def test_curvature_is_the_largest_second_difference(loss: str) -> None:
    spec, h = LOSSES[loss], 1e-3
    grid = np.arange(-4.0, 4.0, h)
    steepest = max(
        float(np.max(np.diff(values_of(loss, grid, label)[1]))) / h for label in labels_of(loss)
    )
    if spec.curvature is not None:
        assert steepest == pytest.approx(spec.curvature, rel=1e-3)
        assert spec.start_curvature is None
    elif spec.start_curvature is not None:  # the curvature has no bound
        around = values_of(loss, np.array([-h, h]), 1.0)[1]
        assert np.diff(around)[0] / (2 * h) == pytest.approx(spec.start_curvature, rel=1e-3)
        assert steepest > 10
    else:  # the loss has a kink, where the slope jumps
        assert steepest > 100


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_are_bounded_as_the_table_says(loss: str) -> None:
    spec, grid = LOSSES[loss], np.linspace(-25.0, 25.0, 5001)
    largest = 0.0
    for label in labels_of(loss):
        values, slopes = values_of(loss, grid, label)
        largest = max(largest, float(np.abs(slopes).max()))
        if spec.slope_bound is not None:
            A, B = spec.slope_bound
            assert (slopes**2 <= A * values + B + 1e-9).all()
    if spec.largest_slope is None:
        assert largest > 20
    else:
        bound = EPSILON if spec.largest_slope == "epsilon" else float(spec.largest_slope)
        assert largest <= bound + 1e-12
        assert largest >= 0.79 * bound
    if spec.selectable:
        assert loss_constants(loss, 1.0) == spec.slope_bound


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_updates_means_slopes_of_zero(loss: str) -> None:
    grid = np.linspace(-25.0, 25.0, 5001)
    zero_slopes = [np.count_nonzero(values_of(loss, grid, y)[1] == 0) for y in labels_of(loss)]
    assert (min(zero_slopes) > 5) == LOSSES[loss].sparse_updates


@pytest.mark.parametrize("loss", LOSSES)
def test_decisions_change_where_both_labels_have_the_same_loss(loss: str) -> None:
    spec = LOSSES[loss]
    if "classifier" not in spec.tasks:
        assert spec.decision_at == 0.0
        return
    at = np.array([spec.decision_at])
    assert values_of(loss, at, spec.low)[0] == pytest.approx(values_of(loss, at, 1.0)[0])
    scores = links.scores(np.array([[spec.decision_at]]), loss)
    assert scores[0] == 0.0
    if spec.has_probabilities:
        assert links.separate_probabilities(scores, loss)[0] == 0.5


@pytest.mark.parametrize("loss", LOSSES)
def test_links_map_the_best_raw_prediction_to_the_label(loss: str) -> None:
    spec = LOSSES[loss]
    assert spec.link in links.LINKS
    raw = np.linspace(-35.0, 35.0, 1401)
    linked = links.values(raw, loss)
    assert np.isfinite(linked).all()
    assert (np.diff(linked) >= 0).all()
    smallest, largest = (0.0, 1.0) if spec.has_probabilities else spec.label_range
    assert (linked >= smallest).all()
    assert (linked <= largest).all()
    if "regressor" in spec.tasks and spec.label_range != ANY_LABEL:
        for label in (y for y in labels_of(loss) if y > 0):
            best = raw[values_of(loss, raw, label)[0].argmin()]
            assert links.values(np.array([best]), loss)[0] == pytest.approx(label, rel=0.05)
    assert (spec.link != "identity") == (spec.has_probabilities or spec.label_range != ANY_LABEL)


def test_the_poisson_link_clips_exponents_like_the_core() -> None:
    assert links.values(np.array([31.0, -99.0]), "poisson").tolist() == [
        *(math.exp(30.0), math.exp(-30.0)),
    ]


def test_logistic_probabilities_are_never_exactly_0_or_1() -> None:
    found = links.label_probabilities(np.array([-1000.0, 0.0, 1000.0]), "logistic")
    assert 0 < found[0] < 1e-300
    assert found[1] == 0.5
    assert 1 - 1e-15 < found[2] < 1
    assert links.label_probabilities(np.array([-1.0, 1.0]), "clipped_square").tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("loss", "bad", "message"),
    [
        ("poisson", -1.0, "loss 'poisson' needs y >= 0"),
        ("clipped_square", 1.5, "loss 'clipped_square' needs y in [0, 1]"),
        ("clipped_square", -0.5, "loss 'clipped_square' needs y in [0, 1]"),
    ],
)
def test_labels_outside_the_range_are_refused(loss: str, bad: float, message: str) -> None:
    check_labels(loss, np.array([0.0, 1.0]))
    assert LOSSES[loss].refuses(np.array([0.0, bad])).tolist() == [False, True]
    with pytest.raises(ValueError, match=re.escape(message)):
        check_labels(loss, np.array([0.0, bad]))


@pytest.mark.parametrize("loss", REGRESSOR_LOSSES)
def test_losses_without_a_label_range_allow_any_label(loss: str) -> None:
    if LOSSES[loss].label_range == ANY_LABEL:
        check_labels(loss, np.array([-1e300, 0.0, 1e300]))


@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
def test_losses_scale_rows_as_the_table_says(loss: str) -> None:
    params = defaults("truncated-gradient", loss=loss)
    arguments = core_parameters("truncated-gradient", params, 1)
    learner = _core.make_learner("truncated_gradient", "dense", "float64", 4, *arguments)
    learner.start_from(np.arange(4, dtype=np.uint64), np.ones(4), 0.0)
    raw = learner.predict(_core.dense_batch(np.ones((1, 4))))[0]
    assert raw == (2.0 if LOSSES[loss].scales_rows else 4.0)


def test_automatic_rates_and_strengths() -> None:
    eta = {"logistic": 3.0, "squared": 0.75, "square": 0.375, "poisson": 0.75, "hinge": 0.75}
    strength = {"logistic": 0.01, "squared": 1.0, "square": 2.0, "poisson": 1.0, "hinge": 0.04}
    assert {name: LOSSES[name].auto_eta for name in eta} == eta
    assert {name: LOSSES[name].auto_strength for name in strength} == strength


def test_the_smooth_replacement_of_a_loss_has_a_curvature() -> None:
    for loss in LOSSES.values():
        assert not loss.smooth or LOSSES[loss.smooth].curvature is not None


# ---- rules ---------------------------------------------------------------------------------------


def test_the_core_and_the_table_have_the_same_rules() -> None:
    assert set(_core.rule_names()) == {rule.core for rule in STREAMING_RULES.values()}
    for name, rule in STREAMING_RULES.items():
        arguments = core_parameters(name, defaults(name), 10, 4)
        assert _core.make_learner(rule.core, "dense", "float64", 4, *arguments).steps == 0
    arguments = stabilized_parameters(defaults("stabilized"), 0, 10)
    assert _core.make_stabilized("robust", "float64", 4, *arguments) is not None


@pytest.mark.parametrize("name", RULES)
def test_rules_have_the_estimators_of_the_table(name: str) -> None:
    rule = RULES[name]
    for task in ("classifier", "regressor"):
        if task not in rule.estimators:
            assert not any(
                getattr(estimators, e).rule == name and getattr(estimators, e).task == task
                for e in estimators.__all__
            )
            with pytest.raises(ParameterError, match=f"the rule {name} has no {task}"):
                estimator_class(name, task)  # type: ignore[arg-type]
            continue
        made = estimator_class(name, task)  # type: ignore[arg-type]
        assert made is getattr(thresher, rule.estimators[task])  # type: ignore[index]
        assert (made.rule, made.task) == (name, task)
        assert rule.losses_for(task)  # type: ignore[arg-type]


def test_every_estimator_belongs_to_a_rule() -> None:
    assert sorted(e for r in RULES.values() for e in r.estimators.values()) == sorted(
        estimators.__all__
    )


@pytest.mark.parametrize("name", RULES)
def test_traits_of_a_rule_are_consistent(name: str) -> None:
    rule = RULES[name]
    assert rule.streams == (name in STREAMING_RULES) == (name not in MATRIX_RULES)
    assert rule.streams == hasattr(estimator_class(name, rule.tasks[0]), "_learn_once")
    assert rule.lanes == rule.streams
    for parameter in (rule.penalty, rule.inverse_rate, rule.rate_from_rows, *rule.core_names):
        assert not parameter or parameter in rule.own
    assert (rule.penalty is None) == (not {"gravity", "l1"} & set(rule.own))
    assert not rule.steers or "target_nnz" in rule.own
    assert bool(rule.refit_rule) == ("refit" in rule.own) <= ("target_nnz" in rule.own)
    if rule.refit_rule:
        again = RULES[rule.refit_rule]
        assert again.lanes
        assert again.penalty
        assert set(rule.losses) <= set(again.losses)
    if rule.hooks:
        assert callable(importlib.import_module(f"thresher.training.{rule.hooks}").make_hooks)
    assert set(rule.refused_losses) <= set(rule.losses) <= set(LOSSES)
    assert set(rule.auto_eta) <= set(rule.losses)
    assert not rule.ends_by_itself or rule.keeps_facts


@pytest.mark.parametrize("name", STREAMING_RULES)
def test_a_rule_ends_by_itself_if_its_learner_counts_updates(name: str) -> None:
    rule = RULES[name]
    arguments = core_parameters(name, defaults(name), 10, 4)
    learner = _core.make_learner(rule.core, "dense", "float64", 4, *arguments)
    assert rule.ends_by_itself == ("updates" in learner.facts())


@pytest.mark.parametrize("name", RULES)
def test_the_nonzero_store_is_allowed_as_the_table_says(name: str) -> None:
    rule = RULES[name]
    if "store" not in rule.parameters or "classifier" not in rule.tasks:
        assert not rule.nonzero_store
        return
    X, y = np.eye(3), np.array([0, 1, 2])
    for loss in rule.losses_for("classifier"):
        chosen = {"loss": loss} if "loss" in rule.parameters else {}
        made = estimator_class(name, "classifier")(store="nonzero", **chosen)
        if rule.nonzero_store and LOSSES[loss].nonzero_store:
            assert made.fit(X, y).classes_.tolist() == [0, 1, 2]
        else:
            with pytest.raises(ParameterError, match="store='nonzero'"):
                made.fit(X, y)


# ---- no code tests the names of rules and losses -------------------------------------------------


def names_tested(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name for each comparison with the name of a rule or loss."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and part.value in {*RULES, *LOSSES}:
                    inside = any(
                        part in ast.walk(call) for call in ast.walk(node) if is_lookup(call)
                    )
                    if not inside:
                        yield node.lineno, str(part.value)


def is_lookup(node: ast.AST) -> bool:
    """Return whether a node looks up a key, or calls a function."""
    return isinstance(node, ast.Call | ast.Subscript)


def test_names_of_rules_and_losses_are_not_tested_outside_the_tables() -> None:
    found = {
        str(path.relative_to(SOURCE)): list(names_tested(ast.parse(path.read_text())))
        for path in sorted(SOURCE.rglob("*.py"))
    }
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_names_tested_finds_comparisons_only() -> None:
    tested = ['rule == "ftrl"', 'loss not in ("hinge", x)', '"poisson" != loss', 'r in {"ftrl": 1}']
    for text in tested:
        assert list(names_tested(ast.parse(text))), text
    for text in ('f("ftrl") == 1', 'known["margin"] > 2', 'rule = "ftrl"', 'link == "exp"'):
        assert not list(names_tested(ast.parse(text))), text
