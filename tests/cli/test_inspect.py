"""`thresher inspect`."""

import json

import thresher
from support.files import called
from support.training_cases import trained


def test_inspect(folder):
    model, _ = trained(folder, "rows.vw")
    shown = called("inspect", model, "--top", "5").stdout
    assert shown.splitlines()[0].split() == ["rule", "one-pass"]
    assert len(shown.split("\n\n")[1].splitlines()) == 6
    facts = json.loads(called("inspect", model, "--json", "--top", "2").stdout)
    assert facts["rule"] == "one-pass"
    assert facts["nonzero weights"] == thresher.load(model).nnz
    assert len(facts["top"]) == 2
    best = facts["top"][0]
    why = called("inspect", model, "--why", best["name"]).stdout
    assert best["name"] in why
    (reason,) = json.loads(called("inspect", model, "--why", best["name"], "--json").stdout)
    assert reason["weight"] == best["weight"]
    told = called("inspect", model, "--why", "nothing", code=1).stderr
    assert told.startswith("no feature with nonzero weight has the name 'nothing'")
    assert "feature" not in called("inspect", model, "--top", "0").stdout.split("parameters")[1]


def test_why_takes_names_with_either_sign(tmp_path):
    (tmp_path / "a.csv").write_text("y,colour\n" + "1,red\n0,blue\n" * 30)
    called("train", tmp_path / "a.csv", "-m", tmp_path / "a", "--label", "y", "--quiet")
    (tmp_path / "b.vw").write_text("1 |colour red\n-1 |colour blue\n" * 30)
    called("train", tmp_path / "b.vw", "-m", tmp_path / "b", "--quiet")
    for model, name in (("a", "colour=red"), ("b", "colour^red")):
        found = [
            json.loads(called("inspect", tmp_path / model, "--why", word, "--json").stdout)
            for word in ("colour=red", "colour^red")
        ]
        assert found[0] == found[1]
        assert found[0][0]["feature"] == name


def test_why_of_a_stabilized_model(folder):
    model, _ = trained(folder, "rows.vw", "--rule", "stabilized", "--quiet")
    best = json.loads(called("inspect", model, "--json").stdout)["top"][0]
    assert best["name"].startswith("word^w")
    (reason,) = json.loads(called("inspect", model, "--why", best["name"], "--json").stdout)
    assert abs(reason["z"]) > 2
    assert 0 < reason["q"] < 0.5
    words = (folder / "rows.vw").read_text().splitlines()
    having = sum(best["name"].removeprefix("word^") in line.split() for line in words)
    assert reason["documents"] == having
