"""The rule of `thresher train` if none is given."""

import pytest

import thresher
from support.training_cases import trained
from thresher.cli.options.parsed import TrainOptions
from thresher.cli.steps.default_rule import default_rule


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"passes": 2}, "the passes of one-pass need --shuffle"),
        ({"chosen": {"l1": "1"}}, "--l1 was given"),
        ({"loss": "hinge"}, "one-pass has no loss hinge"),
        ({"store": "nonzero"}, "one-pass has no store 'nonzero'"),
        ({"workers": 0}, "one-pass does not train on a cluster"),
        ({"ray": "auto"}, "one-pass does not train on a cluster"),
        ({"reading": {"bits": 28}}, "one-pass needs more than 2 GiB for 2^28 features"),
    ],
)
def test_ftrl_is_the_rule_where_one_pass_cannot_be_used(given, reason):
    found = default_rule(TrainOptions(data=["rows.svm"], model="m", **given))
    assert found == ("ftrl", f"the rule is ftrl, because {reason}")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"passes": 1},
        {"passes": 5, "shuffle": True},
        {"chosen": {"cut": "0.01"}},
        {"loss": "poisson"},
        {"reading": {"bits": 20}},
    ],
)
def test_one_pass_is_the_rule_elsewhere(given):
    assert default_rule(TrainOptions(data=["rows.svm"], model="m", **given)) == ("one-pass", "")


@pytest.mark.parametrize(
    ("options", "rule"),
    [([], "one-pass"), (["--loss", "hinge"], "ftrl"), (["--passes", "2"], "ftrl")],
)
def test_a_model_equals_that_of_the_named_rule(folder, options, rule):
    model, done = trained(folder, "rows.svm", *options)
    named, other = trained(folder, "rows.svm", *options, "--rule", rule, name="named.thresher")
    assert ("the rule is ftrl" in done.stderr) == (rule == "ftrl")
    assert "the rule is" not in other.stderr
    found, expected = thresher.load(model), thresher.load(named)
    assert found.parameters == expected.parameters
    assert found.weights.tolist() == expected.weights.tolist()
