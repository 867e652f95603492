"""Labels that training did not see, wherever rows are evaluated: they are errors, and are told."""

import numpy as np
import pytest
from sklearn.base import clone

import thresher
from support.files import called, svmlight
from support.training_cases import events
from thresher.data.labels import ArrivingClasses, LabelSets, ManyClasses, TwoClasses
from thresher.data.matrix_source import LabelArray
from thresher.data.scan import scan
from thresher.data.unseen_labels import UnseenLabels, UnseenLabelWarning
from thresher.errors import DataError

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
THREE = np.argmax(X[:, :3], axis=1)
TWO = (X[:, 0] > 0).astype(int)
OTHER = rng.normal(size=(60, 4))
THREE_OTHER, TWO_OTHER = np.argmax(OTHER[:, :3], axis=1), (OTHER[:, 0] > 0).astype(int)
LATE_THREE, LATE_TWO = THREE_OTHER.copy(), TWO_OTHER.copy()
LATE_THREE[:5], LATE_TWO[:5] = 7, 7
KNOWN = np.arange(60) >= 5
SAYS = r"5 of 60 .*rows have a label that training did not see: 7 \(5\); they count as errors"


# ---- counting ------------------------------------------------------------------------------------


def test_targets_of_each_kind_of_labels():
    found = UnseenLabels()
    targets, known = found.targets(ManyClasses([1, 2]), LabelArray(np.array([1.0, 2.0, 5.0])))
    assert (targets[0].tolist(), known.tolist()) == ([-1, 1, -1], [True, True, False])
    two = TwoClasses()
    two.seen = -1.0
    targets, known = found.targets(two, LabelArray(np.array([1, -1, 0, 3])))
    assert (targets[0].tolist(), known.tolist()) == ([1, -1, -1, -1], [True, True, False, False])
    arrived = ArrivingClasses(arrived=[5, 1, 3])
    targets, known = found.targets(arrived, LabelArray(np.array([3.0, 9.0, 5.0])))
    assert known.tolist() == [True, False, True]
    assert [targets[k].tolist() for k in range(3)] == [[-1, -1, -1], [1, -1, -1], [-1, -1, 1]]
    assert (found.rows, found.unseen) == (10, 4)
    assert "4 of 10 rows have" in str(found.warning())


def test_lists_of_labels(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1,2 1:1\n2,9 1:1\n8,9 1:1\n 1:1\n")
    found = UnseenLabels()
    for block in scan(path, multilabel=True).blocks():
        targets, known = found.targets(LabelSets([1, 2]), block)
    assert known.tolist() == [True, False, False, True]
    assert [targets[k].tolist() for k in range(2)] == [[1, -1, -1, -1], [1, 1, -1, -1]]
    assert str(found.warning()).startswith("2 of 4 rows have")
    assert "9 (2), 8 (1)" in str(found.warning())


def test_many_unseen_labels_are_not_all_listed():
    found = UnseenLabels()
    found.count(np.array([0, 1]), np.arange(100))
    assert "and 93 others" in str(found.warning())


def test_a_missing_label_is_still_an_error():
    with pytest.raises(DataError, match="no label"):
        UnseenLabels().targets(ManyClasses([1, 2]), LabelArray(np.array([1.0, np.nan])))


# ---- eval_set and early stopping -----------------------------------------------------------------

ESTIMATORS = [
    thresher.FTRLClassifier(random_state=0, passes=3, tol=0.0),
    thresher.OnePassClassifier(random_state=0),
    thresher.TruncatedGradientClassifier(random_state=0, passes=3),
    thresher.CoordinateDescentClassifier(random_state=0, passes=3, tol=1.0),
    thresher.StabilizedClassifier(random_state=0, paths=4),
]


def last_loss(estimator, X_train, y, eval_set):
    return estimator.fit(X_train, y, eval_set=eval_set).history_[-1].valid_loss


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_validation_rows_of_two_classes_are_left_out_of_the_loss(estimator):
    estimator = clone(estimator)
    says = r"did not see: 7 \(5\); the loss is that of the other 55"
    with pytest.warns(UnseenLabelWarning, match=says) as caught:
        loss = last_loss(estimator, X, TWO, (OTHER, LATE_TWO))
    assert sum(issubclass(w.category, UnseenLabelWarning) for w in caught) == 1  # not each pass
    known = last_loss(estimator, X, TWO, (OTHER[KNOWN], TWO_OTHER[KNOWN]))
    assert loss == pytest.approx(known, rel=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_validation_rows_of_several_classes_are_wrong_for_each_output(estimator):
    estimator = clone(estimator)
    with pytest.warns(UnseenLabelWarning, match=SAYS):
        last_loss(estimator, X, THREE, (OTHER, LATE_THREE))
    losses = [r.valid_loss for r in estimator.history_ if r.valid_loss is not None]
    raw = estimator.decision_function(OTHER)
    signs = np.where(LATE_THREE[:, None] == np.arange(3), 1.0, -1.0)
    if type(estimator).__name__ != "OnePassClassifier":  # its last weights are cut afterwards
        expected = pytest.approx(np.log1p(np.exp(-signs * raw)).mean(), rel=1e-3)
        assert expected in (losses[-1], min(losses))  # of the last pass, or of the best


def test_validation_rows_of_a_source(tmp_path):
    train = svmlight(tmp_path / "a.svm", classes=(1, 2, 5))
    valid = svmlight(tmp_path / "b.svm", classes=(1, 2, 8), seed=1)
    model = thresher.FTRLClassifier(random_state=0, passes=2)
    with pytest.warns(UnseenLabelWarning, match="8"):
        model.fit(scan(train), eval_set=scan(valid))
    with pytest.warns(UnseenLabelWarning, match="8"):
        model.fit(scan(train), classes="arriving", eval_set=scan(valid))


# ---- score ---------------------------------------------------------------------------------------


def test_score_counts_errors(tmp_path):
    for y, late in ((TWO, LATE_TWO), (THREE, LATE_THREE)):
        model = thresher.FTRLClassifier(random_state=0).fit(X, y)
        right = (model.predict(OTHER) == late).mean()
        with pytest.warns(UnseenLabelWarning, match=SAYS):
            assert model.score(OTHER, late) == right
        path = tmp_path / "rows.svm"
        path.write_text(
            "".join(
                f"{label} " + " ".join(f"{k}:{v!r}" for k, v in enumerate(row.tolist())) + "\n"
                for label, row in zip(late, OTHER, strict=True)
            )
        )
        with pytest.warns(UnseenLabelWarning, match=SAYS):
            assert model.score(scan(path, zero_based=True)) == pytest.approx(right)


def test_score_of_lists_of_labels(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1,2 1:1\n1 2:1\n2 1:1 3:1\n" * 30)
    model = thresher.FTRLClassifier(random_state=0).fit(scan(path, multilabel=True))
    other = tmp_path / "other.svm"
    other.write_text("1,2,9 1:1\n1 2:1\n")
    with pytest.warns(UnseenLabelWarning, match=r"1 of 2 rows has .* 9 \(1\)"):
        assert model.score(scan(other, multilabel=True)) <= 0.5


# ---- searches ------------------------------------------------------------------------------------


def test_a_class_of_one_fold_does_not_end_a_search(tmp_path):
    rare = THREE.copy()
    rare[7] = 9
    for scoring in (None, "neg_log_loss"):
        search = thresher.OnePassSearchCV(
            thresher.FTRLClassifier(random_state=0), {"l1": [0.1, 1.0]}, cv=3, scoring=scoring
        )
        with pytest.warns(UnseenLabelWarning, match="1 of 3 splits have no row of the class 9"):
            search.fit(X, rare)
        assert np.isfinite(search.best_score_)
    rows = svmlight(tmp_path / "rows.svm", classes=(1, 2, 5))
    rows.write_text(rows.read_text() + "7 1:1\n")
    more = ["-m", tmp_path / "m", "--grid", "l1=0.1,1", "--multiclass", "--quiet"]
    done = called("tune", rows, *more)
    assert "warning: the training rows of 1 of 5 splits have no row of the class 7" in done.stderr
    assert "use fewer splits with --folds" in done.stderr
    assert thresher.load(tmp_path / "m").classes.tolist() == [1, 2, 5, 7]


# ---- comparisons ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("y", "late"), [(TWO, LATE_TWO), (THREE, LATE_THREE)])
def test_compare_counts_errors(y, late):
    settings = {"rules": ["ftrl"], "orders": 1, "folds": 2}
    with pytest.warns(UnseenLabelWarning, match=SAYS.replace(".*rows", "test rows")):
        found = thresher.compare(X, y, OTHER, late, **settings)
    truth = TWO_OTHER if y is TWO else THREE_OTHER
    plain = thresher.compare(X, y, OTHER[KNOWN], truth[KNOWN], **settings)
    expected = (plain["ftrl"].error.mean * 55 + 100 * 5) / 60
    assert found["ftrl"].error.mean == pytest.approx(expected)
    if y is TWO:
        assert found["ftrl"].auc.mean == pytest.approx(plain["ftrl"].auc.mean)


def test_compare_without_a_common_label_is_an_error():
    with pytest.raises(DataError, match="no training row has a label of the test rows, such as 7"):
        thresher.compare(X, TWO, OTHER, np.full(60, 7), rules=["ftrl"], orders=1, folds=2)


# ---- pages and the shell -------------------------------------------------------------------------


def test_pages_count_errors(tmp_path):
    model = thresher.FTRLClassifier(random_state=0).fit(X, THREE).model_
    with pytest.warns(UnseenLabelWarning, match=SAYS):
        model.report(tmp_path / "page.html", OTHER, LATE_THREE)
    wrong = 100 * np.mean(model.predict(OTHER) != LATE_THREE)
    text = (tmp_path / "page.html").read_text()
    assert f"{wrong:.2f} %" in text
    assert "5 of 60 rows have a label that training did not see" in text


def test_the_shell(tmp_path):
    train = svmlight(tmp_path / "a.svm")
    valid = tmp_path / "b.svm"
    valid.write_text(svmlight(valid, rows=50, seed=1).read_text() + "3 1:1\n" * 5)
    model, page = tmp_path / "m", tmp_path / "page.html"
    says = "5 of 55 validation rows have a label that training did not see: 3 (5)"
    options = ["--rule", "ftrl", "--passes", "3", "--valid", valid]
    done = called("train", train, "-m", model, *options, "--quiet")
    assert done.stderr.count(f"warning: {says}") == 1
    done = called("train", train, "-m", model, *options, "--json")
    messages = [event["message"] for event in events(done) if event["event"] == "warning"]
    assert [message.startswith(says) for message in messages] == [True]
    called("train", train, "-m", tmp_path / "none", *options, "--strict", "--quiet", code=1)
    assert not (tmp_path / "none").exists()
    done = called("inspect", model, "--html", page, "--data", valid)
    assert "warning: 5 of 55 rows have a label" in done.stderr
    rules = ["--rules", "ftrl", "--orders", "1", "--folds", "2", "--quiet"]
    done = called("compare", train, "--test", valid, *rules)
    assert "warning: 5 of 55 test rows have a label" in done.stderr


def test_learning_an_unknown_class_stays_an_error():
    stream = thresher.FTRLClassifier().partial_fit(X, TWO, classes=[0, 1])
    with pytest.raises(ValueError, match="not among the classes"):
        stream.partial_fit(OTHER, LATE_TWO)
