"""A feature number that is too large for a dense store: an error with its place and advice."""

import pytest

import thresher
from support.files import called

WORDS = (
    "here or in one of the next rows, a feature number is {} or more, too large for a dense store"
)


@pytest.mark.parametrize(
    ("number", "most"), [(2**31 + 1, "2^31"), (2**32 + 1, "2^31"), (2**33 + 1, "2^33")]
)
def test_the_error_of_lanes_has_a_place_and_advice(tmp_path, number, most):
    rows = tmp_path / "rows.svm"
    rows.write_text(f"1 1:1\n1 {number}:1\n-1 2:1\n")
    done = called("train", rows, "-m", tmp_path / "m", "--rule", "one-pass", code=1)
    advice = "--store hashed accepts it, and --bits folds it"
    assert done.stderr.splitlines()[-1] == f"{rows}:1: {WORDS.format(most)}; {advice}"
    called("train", rows, "-m", tmp_path / "m", "--rule", "one-pass", "--store", "hashed")
    with pytest.raises(ValueError, match="store='hashed' accepts it"):
        thresher.OnePassClassifier().fit(thresher.scan(rows))
