"""`compare`: the protocol, the measures and the results."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import cohen_kappa_score, roc_auc_score

import thresher
from support.comparisons import plain, problem
from support.slices import sliced
from thresher import DataError, ParameterError, stability_score
from thresher.comparison import CANDIDATES, protocol
from thresher.comparison.candidates import inner
from thresher.comparison.measures import error_of, kappas_of, measure_of, measured, support_of
from thresher.comparison.rows import rows_of

QUICK = ["ftrl", "dual-averaging", "sgd"]


@pytest.fixture(scope="module")
def everything():
    X, y = problem()
    seen = []
    return thresher.compare(X, y, orders=3, folds=2, callback=seen.append), seen


# ---- results of all rules ------------------------------------------------------------------------


def test_all_rules_for_two_classes(everything):
    found, seen = everything
    wanted = [name for name, candidate in CANDIDATES.items() if "classifier" in candidate.tasks]
    assert sorted(row.rule for row in found) == sorted(wanted)
    for row in found:
        assert row.measured, (row.rule, row.reason)
        assert len(row.runs) == 3
        assert 0 <= row.error.mean < 40, row.rule
        assert 0.6 < row.auc.mean <= 1, row.rule
        assert 0 < row.nonzeros.mean <= 100
        assert -1 <= row.kappa.mean <= 1
        assert row.seconds.mean > 0
        assert row.mse is None
        assert row.r2 is None
        assert set(row.chosen) == set(row.grid)
        assert all(row.chosen[name] in row.grid[name] for name in row.chosen)
    errors = [row.error.mean for row in found]
    assert errors == sorted(errors)
    assert [p.rule for p in seen if p.row is not None] == wanted
    assert [(p.number, p.orders) for p in seen if p.doing == "orders"][:3] == [
        (1, 3),
        (2, 3),
        (3, 3),
    ]


def test_means_and_standard_deviations_are_those_of_the_orders(everything):
    for row in everything[0]:
        for name in ("error", "auc", "nonzeros", "seconds"):
            values = [run[name] for run in row.runs]
            measure = getattr(row, name)
            assert measure.mean == pytest.approx(np.mean(values), abs=1e-12)
            assert measure.sd == pytest.approx(np.std(values, ddof=1), abs=1e-12)


def test_numbers_are_those_of_a_plain_loop():
    """A plain loop gives the same orders, seeds, errors, AUC, nonzeros and kappa."""
    X, y = problem()
    train, test = np.arange(180), np.arange(180, 240)
    row = thresher.compare(X[train], y[train], X[test], y[test], rules=["ftrl"], orders=4)["ftrl"]
    supports = []
    for number, run in enumerate(row.runs):
        rng = np.random.default_rng([0, number])
        order = rng.permutation(180)
        model = thresher.FTRLClassifier(**row.chosen, random_state=int(rng.integers(2**31)))
        model.fit(X[train][order], y[train][order])
        scores = model.decision_function(X[test])
        assert run["error"] == pytest.approx(100 * np.mean((2 * y[test] - 1) * scores <= 0))
        assert run["auc"] == roc_auc_score(y[test], scores)
        supports.append(model.coef_.ravel() != 0)
        assert run["nonzeros"] == pytest.approx(100 * supports[-1].mean())
    pairs = [cohen_kappa_score(a, b) for a, b in itertools.combinations(supports, 2)]
    pairs = [1.0 if np.isnan(pair) else pair for pair in pairs]
    assert row.kappa.mean == pytest.approx(np.mean(pairs))
    assert row.kappa.mean == pytest.approx(stability_score(supports, 25))
    assert row.kappa.sd == pytest.approx(np.std(pairs, ddof=1))


# ---- test rows have no influence on training -----------------------------------------------------


@pytest.mark.parametrize("scale", sliced([None, "variance"], 1))
def test_test_rows_change_only_the_test_measures(scale):
    """With other test rows, parameters, errors over folds and supports are the same."""
    X, y = problem()
    rules = ["ftrl", "stabilized-paper", "coordinate-descent", "l1-logistic"]
    given = {"rules": rules, "orders": 2, "folds": 3, "scale": scale}
    one = thresher.compare(X[:180], y[:180], X[180:], y[180:], **given)
    other = thresher.compare(X[:180], y[:180], 3 * X[180:], 1 - y[180:], **given)
    for row in one:
        twin = other[row.rule]
        for name in ("chosen", "grid", "cv_error", "cv_standard_error", "nonzeros", "kappa"):
            assert getattr(row, name) == getattr(twin, name)
        assert row.error != twin.error


def test_folds_contain_only_training_rows_and_are_the_same_for_all_rules(monkeypatch):
    X, y = problem()
    X[:, -1] = np.arange(1, len(X) + 1) / len(X)  # identifies the rows
    seen = []
    real = protocol.choose_by_folds

    def spy(estimator, grid, rows, labels, folds, **more):
        seen.append((rows[:, -1], folds))
        return real(estimator, grid, rows, labels, folds, **more)

    monkeypatch.setattr(protocol, "choose_by_folds", spy)
    train = np.arange(0, 240, 2)
    thresher.compare(X[train], y[train], X[1::2], y[1::2], rules=["ftrl", "l1-logistic"], orders=1)
    assert len(seen) == 2
    for marks, folds in seen:
        assert set(marks) == set(X[train, -1])
        held_out = np.concatenate([test for _, test in folds])
        assert sorted(held_out) == list(range(len(train)))
        for learn, test in folds:
            assert not set(learn) & set(test)
            assert abs(y[train][test].mean() - y[train].mean()) < 0.05
    for one, other in zip(seen[0][1], seen[1][1], strict=True):
        assert np.array_equal(one[0], other[0])
        assert np.array_equal(one[1], other[1])


def test_the_random_test_rows_are_stratified_and_depend_on_the_seed():
    X, y = problem(rows=200)
    y = (np.arange(200) < 40).astype(int)
    found = [
        thresher.compare(X, y, rules=["sgd"], orders=1, folds=2, test_share=0.3, seed=seed)
        for seed in (0, 0, 1)
    ]
    assert found[0].about["test rows"] == 60
    assert plain(found[0]["sgd"]) == plain(found[1]["sgd"])
    assert found[0].about["digests"] == found[1].about["digests"]
    assert found[0].about["digests"] != found[2].about["digests"]


def test_orders_differ_and_more_orders_keep_the_first():
    X, y = problem()
    few = thresher.compare(X, y, rules=["truncated-gradient"], orders=2, folds=2)[0]
    many = thresher.compare(X, y, rules=["truncated-gradient"], orders=5, folds=2)[0]
    assert plain(many)[1][:2] == plain(few)[1]
    assert len({run["auc"] for run in many.runs}) > 1


def test_results_do_not_depend_on_threads():
    X, y = problem(rows=150)
    rules = ["ftrl", "l1-logistic"]
    one, two = (
        thresher.compare(X, y, rules=rules, orders=2, folds=2, n_jobs=jobs) for jobs in (1, 2)
    )
    assert [plain(row) for row in one] == [plain(row) for row in two]


# ---- measures ------------------------------------------------------------------------------------


def test_a_score_of_zero_is_an_error_for_both_classes():
    scores = np.array([0.0, 0.0, 1.0, -1.0])
    assert error_of(scores, np.array([0, 1, 1, 0])) == 50
    table = np.array([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0]])  # a tie for the highest score is an error
    assert error_of(table, np.array([0, 0])) == 50


def test_a_model_of_zeros_is_always_wrong_and_has_half_the_auc():
    class Nothing:
        coef_ = np.zeros((1, 3))

        def decision_function(self, X):
            return np.zeros(len(X))

    found = measured(Nothing(), np.zeros((4, 3)), np.array([0, 1, 1, 0]), "binary")
    assert found == {"error": 100.0, "auc": 0.5}
    assert not support_of(Nothing(), 3).any()


def test_one_class_in_the_test_rows_has_no_auc():
    X, y = problem()
    ones = np.flatnonzero(y == 1)[:30]
    row = thresher.compare(X, y, X[ones], y[ones], rules=["sgd"], orders=2, folds=2)[0]
    assert row.auc is None
    assert row.error is not None


def test_one_order_has_no_kappa():
    X, y = problem()
    row = thresher.compare(X, y, rules=["sgd"], orders=1, folds=2)[0]
    assert row.kappa is None
    assert row.error.sd is None
    assert kappas_of([np.ones(4, bool)] * 3, 4) == [1.0] * 3
    assert measure_of([2.0]) == (2.0, None)


# ---- choices -------------------------------------------------------------------------------------


def test_choose_sparsest_gives_sparser_models_within_one_standard_error():
    X, y = problem(rows=300, noise=2.0)
    best, sparsest = (
        thresher.compare(X, y, rules=QUICK[:2], orders=2, folds=5, choose=choose)
        for choose in ("best", "sparsest")
    )
    for row in best:
        other = sparsest[row.rule]
        assert other.nonzeros.mean < row.nonzeros.mean
        assert row.cv_error <= other.cv_error <= row.cv_error + row.cv_standard_error + 1e-9


def test_rules_without_the_loss_use_a_similar_one():
    X, y = problem()
    rules = ["sgd", "stabilized", "coordinate-descent", "stabilized-paper"]
    found = thresher.compare(X, y, rules=rules, loss="hinge", scale="variance", orders=2, folds=2)
    assert {row.rule: row.loss for row in found} == {
        "sgd": "hinge",
        "stabilized": "hinge",
        "stabilized-paper": "hinge",
        "coordinate-descent": "squared_hinge",
    }
    assert any("no loss hinge" in text for text in found["coordinate-descent"].notes)


def test_scales_are_computed_from_training_rows_only():
    X, y = problem()
    far = X[180:].copy()
    far[:, 5] *= 1e6
    given = {"rules": ["sgd"], "orders": 2, "folds": 2, "scale": "variance"}
    one = thresher.compare(X[:180], y[:180], X[180:], y[180:], **given)[0]
    other = thresher.compare(X[:180], y[:180], far, y[180:], **given)[0]
    assert one.chosen == other.chosen
    assert one.cv_error == other.cv_error
    rows = thresher.compare(X, y, rules=["sgd"], orders=1, folds=2, scale="unit-norm")
    again = thresher.compare(5 * X, y, rules=["sgd"], orders=1, folds=2, scale="unit-norm")
    assert plain(rows[0])[1] == plain(again[0])[1]


@pytest.mark.parametrize(
    ("rule", "powers"),
    [
        ("truncated-gradient", {"gravity": 1, "eta0": -2}),
        ("ftrl", {"l1": 1, "alpha": -1}),
        ("dual-averaging", {"l1": 1, "strength": 2}),
        ("margin-perceptron", {"l1": 1, "margin": 2}),
        ("averaged-sgd", {"alpha": 2}),
        ("rounding", {"ceiling": -1}),
        ("coordinate-descent", {"l1": 1}),
        ("l1-logistic", {"C": -1}),
    ],
)
def test_grids_depend_on_the_scale_of_the_data(rule, powers):
    """If values are 1000 times larger, each parameter changes by a power of 1000."""
    X, y = problem(rows=60)
    grids = []
    for scale in (1.0, 1000.0):
        rows = rows_of(scale * X, y, X, y, loss=None, task=None, test_share=0.25, seed=0)
        sizes = rows.sizes(CANDIDATES[rule].loss_for("classifier", None))
        made = CANDIDATES[rule].make(sizes, 0)
        grids.append(CANDIDATES[rule].grid(inner(made), sizes))
    for name, power in powers.items():
        one, large = ([v for v in grid[name] if v != "auto"] for grid in grids)
        assert large == pytest.approx(np.array(one) * 1000.0**power, rel=0.02)


# ---- other tasks and kinds of data ---------------------------------------------------------------


def test_regression():
    X, y = problem(classes=0)
    found = thresher.compare(X, y, orders=2, folds=2)
    assert found.task == "regression"
    wanted = [name for name, candidate in CANDIDATES.items() if "regressor" in candidate.tasks]
    assert sorted(row.rule for row in found) == sorted(wanted)
    for row in found:
        assert row.measured, (row.rule, row.reason)
        assert row.error is None
        assert row.auc is None
        assert row.r2.mean > 0.4, row.rule
        assert 0.5 < row.mse.mean < 4, row.rule
    assert "R2" in found.table()


def test_several_classes():
    X, y = problem(rows=90, columns=12, classes=3, noise=0.5)
    labels = np.array(["low", "mid", "top"])[y]
    found = thresher.compare(X, labels, orders=1, folds=2)
    assert found.task == "multiclass"
    assert found.about["classes"] == ["low", "mid", "top"]
    for row in found:
        assert row.measured, (row.rule, row.reason)
        assert row.error.mean < 60, row.rule
        assert row.auc is None
    for row in found:  # a column with weights for several classes counts once
        assert row.nonzeros.mean <= 100


def test_matrices_arrays_and_sources_are_the_same(tmp_path):
    X, y = problem(rows=120)
    X = X.round(3)
    path = tmp_path / "rows.svm"
    lines = []
    for row, label in zip(X, y, strict=True):
        pairs = " ".join(f"{j + 1}:{row[j]:.3f}" for j in np.flatnonzero(row))
        lines.append(f"{label} {pairs}\n")
    path.write_text("".join(lines))
    given = {"rules": QUICK[:2], "orders": 2, "folds": 2}
    array, matrix = (thresher.compare(kind(X), y, **given) for kind in (np.array, sp.csr_matrix))
    source = thresher.compare(thresher.scan(path), **given)
    assert array.about["digests"] == matrix.about["digests"] == source.about["digests"]
    assert [plain(row) for row in matrix] == [plain(row) for row in source]


# ---- results -------------------------------------------------------------------------------------


def test_results_are_the_same_after_json(everything, tmp_path):
    found, _ = everything
    again = thresher.Comparison.from_json(found.to_json())
    assert list(again) == list(found)
    assert again.about == found.about
    assert again.table() == found.table()
    found.save(tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text())["rows"][0]["rule"] == found[0].rule
    found.save(tmp_path / "found.html")
    with pytest.raises(ParameterError, match=r"must end in \.html or \.json"):
        found.save(tmp_path / "found.txt")
    for text in ("[]", "{}", '{"format": 99}', "no"):
        with pytest.raises(DataError, match="not a comparison"):
            thresher.Comparison.from_json(text)


def test_the_page_has_all_rules_and_the_protocol_and_needs_no_network(everything):
    found, _ = everything
    html = found.to_html()
    for row in found:
        assert row.title in html
        assert all(name in html for name, value in row.chosen.items() if value is not None)
    for words in (
        "2 folds",
        "3 of the training rows",
        "SHA-256",
        "drawn at random, a share of 0.25",
    ):
        assert words in html
    assert "http" not in html.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert html.count("<circle") >= len(found)
    assert "<script" not in found._repr_html_()
    assert found._repr_html_().count("<tr") == len(found) + 1


def test_the_input_matrix_is_not_changed():
    X, y = problem()
    X = sp.csr_matrix(X)
    X.data[::5] = 0.0  # stored zeros
    parts = [part.copy() for part in (X.data, X.indices, X.indptr)]
    thresher.compare(X, y, X[:20], y[:20], rules=["ftrl"], orders=2)
    for part, before in zip((X.data, X.indices, X.indptr), parts, strict=True):
        np.testing.assert_array_equal(part, before)
