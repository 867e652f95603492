"""`thresher convert`."""

import thresher
from support.files import called
from support.training_cases import trained


def test_convert(folder):
    done = called("convert", folder / "rows.svm", folder / "rows.parquet")
    assert done.stderr == f"400 rows -> {folder}/rows.parquet (parquet)\n"
    called("convert", folder / "rows.parquet", folder / "back.svm.zst")
    called("convert", folder / "back.svm.zst", folder / "again", "--to", "svmlight")
    assert (folder / "again").read_text() == (folder / "rows.svm").read_text()
    one, _ = trained(folder, "rows.svm", "--quiet", name="one.thresher")
    two, _ = trained(folder, "rows.parquet", "--quiet", name="two.thresher")
    assert thresher.load(one).weights.tobytes() == thresher.load(two).weights.tobytes()
    called("convert", folder / "rows.svm", folder / "other.svm", folder / "both.cache", "--quiet")
    assert sum(block.rows for block in thresher.scan(folder / "both.cache").blocks()) == 800
    told = called("convert", folder / "rows.svm", folder / "rows.what", code=2).stderr
    assert "the format is not clear from the name" in told
