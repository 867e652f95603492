"""Files of rows that tests of the command line train on."""

import pytest

from support.files import svmlight, vw


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    svmlight(folder / "rows.svm")
    svmlight(folder / "other.svm", seed=1)
    svmlight(folder / "classes.svm", classes=(1, 2, 5))
    vw(folder / "rows.vw")
    return folder
