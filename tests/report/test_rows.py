"""Reports of models: predictions of given rows, classes, and features that were seen."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from support.pages import RNG, SIGNAL, TRUNCATED, TWO, X, parsed, section
from thresher import (
    FTRLClassifier,
    StabilizedClassifier,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)
from thresher.report.model_page import model_page


def test_the_stabilized_rule_shows_evidence():
    model = StabilizedClassifier(random_state=0).fit(X, TWO).model_
    html = model_page(model, X, TWO)
    best = model.why(model.top(1)[0].name)
    row = parsed(html).find(".//section[@id='features']//tbody/tr")
    assert row is not None
    shown = ["".join(cell.itertext()) for cell in row]
    assert shown[4:] == [f"{best.z:.1f}", f"{best.q:.2g}", f"{best.documents:,}"]


def test_the_published_stabilized_rule_shows_selection_probabilities():
    model = StabilizedClassifier(random_state=0, variant="paper").fit(X, TWO).model_
    best = model.why(model.top(1)[0].name)
    row = parsed(model_page(model)).find(".//section[@id='features']//tbody/tr")
    assert row is not None
    shown = ["".join(cell.itertext()) for cell in row]
    assert shown[4] == f"{best.selection_probability:.2f}"
    assert shown[5:] == [f"{best.updates:,}", f"{best.documents:,}"]


def test_the_stabilized_rule_counts_all_features_seen():
    rare = sp.csr_matrix(np.hstack([X, np.eye(300, 40)]))
    for y in (TWO, np.where(X[:, 3] > 1, "eggs", TWO)):
        model = StabilizedClassifier(random_state=0, target_nnz=5).fit(rare, y).model_
        said = section(model_page(model), "features")
        found = re.search(
            r"Of ([\d,]+) features.* seen, ([\d,]+) have a nonzero weight, ([\d,]+) were purged "
            r"and ([\d,]+) were never tested, because they are in too few rows",
            said,
        )
        assert found is not None
        seen, weights, purged, unjudged = (int(n.replace(",", "")) for n in found.groups())
        assert seen == weights + purged + unjudged == 60 * len(model.intercept)
        assert (weights, unjudged) == (model.nnz, 40 * len(model.intercept))


def test_given_rows_are_predicted_and_checked():
    model = TRUNCATED.fit(X, TWO).model_
    html = model_page(model, X[:100], TWO[:100])
    said = section(html, "rows")
    error = float(np.mean(model.predict(X[:100]) != TWO[:100]))  # no score is 0 here
    assert f"{100 * error:.2f} % error rate" in said
    from sklearn.metrics import confusion_matrix, roc_auc_score

    auc = roc_auc_score(TWO[:100] == "spam", model.decision_function(X[:100]))
    assert f"{auc:.4f} AUC" in said
    assert "only for the rows given to the report" in said
    rows = parsed(html).findall(".//section[@id='rows']//tbody/tr")
    found = [[int("".join(cell.itertext())) for cell in row[1:3]] for row in rows]
    assert found == confusion_matrix(TWO[:100], model.predict(X[:100])).tolist()
    assert "values from" in section(html, "health")
    one = model_page(model, X[TWO == "ham"], TWO[TWO == "ham"])
    assert "not defined: only one class" in section(one, "rows")
    large = X.copy()
    large[:, 3] *= 1e9
    assert "Warnings:" in section(model_page(model, large), "health")


def test_a_tie_with_the_true_class_is_an_error():
    rows, y = np.array([[1.0, 0.0], [0.0, 1.0]] * 20), ["no", "yes"] * 20
    fit = FTRLClassifier(fit_intercept=False, random_state=0).fit
    both = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    html = model_page(fit(rows, y).model_, both, ["yes", "no", "no", "yes"])
    said = section(html, "rows")
    assert "50.00 % error rate" in said
    assert "In 1 rows, another class has the same score as the true class" in said
    cells = parsed(html).findall(".//section[@id='rows']//tbody/tr")
    assert [["".join(c.itertext()) for c in row[1:3]] for row in cells] == [["1", "1"], ["0", "2"]]
    three = fit(np.vstack([rows, [[-1.0, -1.0]] * 20]), [*y, *["so"] * 20]).model_
    assert "66.67 % error rate" in section(
        model_page(three, np.array([[0.0] * 2, [0.0] * 2, [-1.0] * 2]), ["no", "so", "so"]), "rows"
    )


def test_rows_with_hashed_columns_and_with_any_column_name():
    wide = 2**40
    at = np.sort(RNG.choice(wide, 20, replace=False))
    rows = sp.csr_matrix((X.ravel(), np.tile(at, 300), np.arange(0, 6001, 20)), (300, wide))
    few = FTRLClassifier(store="hashed", random_state=0).fit(X, TWO).model_
    hashed = replace(few, indices=at[few.indices.astype(int)].astype(np.uint64), n_features=wide)
    said, same = (section(model_page(*one, TWO), "health") for one in ((hashed, rows), (few, X)))
    assert same.replace("0 empty", f"{wide - 20:,} empty") == said
    frame = pd.DataFrame(X, columns=["blocks", *(f"x{j}" for j in range(1, 20))])
    named = FTRLClassifier(random_state=0).fit(frame, TWO).model_
    assert "300 rows" in section(model_page(named, frame, TWO), "rows")
    assert "values from" in section(model_page(named, frame), "health")


def test_pages_of_regression_multiclass_multilabel_and_empty_models():
    regressor = TruncatedGradientRegressor(eta0=0.01, random_state=0).fit(X, SIGNAL)
    said = section(model_page(regressor.model_, X, SIGNAL), "rows")
    miss = regressor.predict(X) - SIGNAL
    assert f"{np.sqrt(np.mean(miss**2)):.4g} root mean squared error" in said
    assert f"{regressor.score(X, SIGNAL):.4f} R2" in said
    y = np.array([f"class {k:02}" for k in np.arange(300) % 20])
    many = FTRLClassifier(random_state=0).fit(X, y)
    html = model_page(many.model_, X, y, names=[f"word{j}" for j in range(20)])
    assert "20 classes" in section(html, "model")
    assert len(parsed(html).findall(".//section[@id='classes']//tbody/tr")) == 20
    wrong = np.mean(many.predict(X) != y)  # there are no ties
    assert f"{100 * wrong:.2f} % error rate" in section(html, "rows")
    sets = (X[:, :3] > 0).astype(int)
    labels = FTRLClassifier(random_state=0).fit(X, sets)
    right = np.mean((labels.predict(X) == sets).all(axis=1))
    assert f"{100 * right:.2f} % rows with all labels correct" in section(
        model_page(labels.model_, X, sets), "rows"
    )
    with pytest.warns(UserWarning, match="all weights are zero"):
        empty = TruncatedGradientClassifier(gravity=1e3, random_state=0).fit(X, TWO).model_
    html = model_page(replace(empty, history=()), X, TWO)
    assert "No weight is nonzero" in section(html, "features")
    assert "no records of training" in section(html, "learning")
    assert empty._repr_html_()


def test_classes_learned_one_after_the_other_have_their_own_lines():
    three = StabilizedClassifier(random_state=0).fit(X, np.where(X[:, 3] > 1, "eggs", TWO)).model_
    html = model_page(three)
    assert "each has its own line" in section(html, "learning")
    for figure in parsed(html).findall(".//section[@id='learning']//figure"):
        drawn = figure.findall(".//polyline")
        assert len(drawn) == 3
        for line in drawn:
            across = [float(pair.split(",")[0]) for pair in line.get("points", "").split()]
            assert across == sorted(across)
