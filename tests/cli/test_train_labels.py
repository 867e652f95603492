"""`thresher train` and `predict`: classes, multilabel rows, numbers and tables."""

import numpy as np
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import called
from support.training_cases import lines, trained


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
    done = called(
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
    assert done.stderr.startswith("several classes from standard input need --classes")


def test_class_weights(folder):
    plain, _ = trained(folder, "rows.svm", "--quiet", name="plain.thresher")
    heavy, _ = trained(folder, "rows.svm", "--class-weight", "1:100", "--quiet")
    X, _ = load_svmlight_file(str(folder / "rows.svm"))
    ones = [np.mean(thresher.load(model).predict(X) == 1) for model in (plain, heavy)]
    assert ones[1] > ones[0] + 0.05
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


def test_regression(folder):
    model, _ = trained(folder, "rows.svm", "--loss", "squared", "--passes", "5")
    predicted = np.array(lines(called("predict", model, folder / "rows.svm")), float)
    _, y = load_svmlight_file(str(folder / "rows.svm"))
    assert np.mean((predicted - y) ** 2) < 0.5 * np.var(y)
    done = called("predict", model, folder / "rows.svm", "--as", "probability", code=2)
    assert "needs a classifier" in done.stderr


def test_tables_with_words(folder):
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
    for bits in ([], ["--bits", "1"]):  # with 1 bit, any extra column would change a feature
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
