"""The scripts of the gallery run, draw, and show what their texts say."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from support.files import EXAMPLES

plt = pytest.importorskip("matplotlib.pyplot", reason="the gallery draws with matplotlib")
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("plot_*.py"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a script in an empty folder; it returns its names and its pictures."""
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)

    def runner(name):
        names = runpy.run_path(str(EXAMPLES / f"{name}.py"))
        pictures = [plt.figure(number) for number in plt.get_fignums()]
        assert pictures
        for picture in pictures:
            assert any(ax.has_data() for ax in picture.axes)
            picture.canvas.draw()
        assert not list(tmp_path.iterdir())
        return names, pictures

    yield runner
    plt.close("all")


def test_every_script_has_a_title_cells_and_a_test():
    tested = re.findall(r'run\("(\w+)"\)', Path(__file__).read_text())
    assert sorted(tested) == SCRIPTS
    assert len(SCRIPTS) == 11
    for name in SCRIPTS:
        text = (EXAMPLES / f"{name}.py").read_text()
        title, line = text.splitlines()[1:3]
        assert line == "=" * len(title)
        assert text.count("# %%\n") >= 3
        for heading, under in re.findall(r"# %%\n# (.*)\n# (.*)\n", text):
            assert under == "-" * len(heading)


def test_text_classification(run, capsys):
    names, _ = run("plot_text_classification")
    assert names["accuracy"] > 0.9
    for topic, features in names["found"].items():
        positive = {feature.name for feature in features if feature.weight > 0}
        assert positive == set(names["WORDS"][topic].split())


def test_clicks_in_one_pass(run):
    names, pictures = run("plot_clicks_in_one_pass")
    assert len(pictures) == 2
    assert set(names["names"][-5:]) == set(names["EFFECTS"])
    assert names["result"]["roc_auc"] > 0.75


def test_sparsity_path(run):
    names, pictures = run("plot_sparsity_path")
    found = [clf.model_.nnz for clf in names["shown"].values()]
    assert found == sorted(found, reverse=True)
    assert len(pictures) == 2
    assert found[1] < found[0]


def test_feature_discovery(run):
    names, _ = run("plot_feature_discovery")
    truth, selected, kept = names["truth"], names["selected"], names["kept"]
    assert (selected & truth).sum() >= 18
    assert (selected & ~truth).sum() <= 4
    assert (kept & ~truth).sum() > 20  # most features of the lasso have no effect


def test_stability(run):
    names, _ = run("plot_stability")
    kappas = names["kappas"]
    assert kappas["stabilized"] > kappas["truncated gradient, one pass"]


def test_weights_while_learning(run):
    names, _ = run("plot_weights_while_learning")
    for weights in names["paths"].values():
        assert weights.shape == (150, 60)
        assert (weights[-1, :6] != 0).all()
        assert (weights[-1, 6:] == 0).mean() > 0.8


def test_early_stopping(run):
    losses = run("plot_early_stopping")[0]["losses"]
    assert losses["all 40 passes"] > losses["early stopping"] > losses["with a penalty"]


def test_evaluation(run):
    names, pictures = run("plot_evaluation")
    assert names["change"].low > 0
    assert len(pictures[0].axes) == 2
    for result in names["results"].values():
        bins = [one for one in result.tables["calibration"] if one["weight"] > 50]
        assert max(abs(one["predicted"] - one["observed"]) for one in bins) < 0.15


def test_multiclass(run):
    names, pictures = run("plot_multiclass")
    assert names["clf"].model_.nnz <= 250
    assert names["result"]["accuracy"] > 0.9
    assert len(pictures[0].axes) == 10


def test_resume(run, capsys):
    names, _ = run("plot_resume")
    assert names["same"]
    assert "interrupted after 12,000 examples" in capsys.readouterr().out


def test_explain_and_export(run):
    names, _ = run("plot_explain_and_export")
    assert names["apart"] < 1e-12
    np.testing.assert_allclose(names["ends"][-1], names["why"].score)
