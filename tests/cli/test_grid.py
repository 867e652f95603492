"""Grids of parameters given as text."""

from __future__ import annotations

import pytest

from thresher.cli.options.grid import grid_of
from thresher.errors import ParameterError


@pytest.mark.parametrize(
    ("rule", "text", "values"),
    [
        ("truncated-gradient", "gravity=1e-7..1e-3:5", [1e-7, 1e-6, 1e-5, 1e-4, 1e-3]),
        ("truncated-gradient", "gravity=1e-3..1e-5:3", [1e-3, 1e-4, 1e-5]),
        ("truncated-gradient", "gravity=auto,0, 0.5", ["auto", 0.0, 0.5]),
        ("truncated-gradient", "period=1..100:3", [1, 10, 100]),
        ("truncated-gradient", "period=1..3:9", [1, 2, 3]),
        ("truncated-gradient", "average=true,no", [True, False]),
        ("truncated-gradient", "schedule=sqrt,constant", ["sqrt", "constant"]),
        ("truncated-gradient", "fit-intercept=on", [True]),
        ("ftrl", "loss=logistic,hinge", ["logistic", "hinge"]),
        ("ftrl", "l1=0.1,1,10", [0.1, 1.0, 10.0]),
    ],
)
def test_valid_grids(rule, text, values):
    ((_, found),) = grid_of(rule, [text], {}).items()
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["gravity"], "--grid must be NAME=A,B,C or NAME=A..B:N, .*got 'gravity'"),
        (["gravity="], "--grid must be NAME=A,B,C"),
        (["=1"], "--grid must be NAME=A,B,C"),
        (["weight=1"], "--grid weight=1: weight is not a parameter of the rule .* gravity, period"),
        (["passes=1,2"], "passes must be the same for all models.* a grid may have loss, gravity"),
        (["gravity=1,x"], "--grid gravity=1,x: gravity must be a number >= 0.*; got 'x'"),
        (["gravity=1,-1"], "must be a number >= 0.*; got '-1'"),
        (["gravity=1..2"], "a range needs its number of values"),
        (["gravity=1..2:1"], "a range needs its number of values, from 2 to 10,000"),
        (["gravity=1..2:10001"], "its number of values, from 2 to 10,000"),
        (["gravity=1..2:" + "9" * 5000], "its number of values, from 2 to 10,000"),
        (["gravity=1e-6...1e-2:3"], "with two dots.*got '1e-6...1e-2'"),
        (
            ["gravity=1..2:200", "period=1..1000:100"],
            "at most 10,000 combinations are allowed; got 200 x ",
        ),
        (["loss=hinge,magic"], "loss must be one of .*; got 'magic'"),
        (["gravity=0..2:3"], "the ends of a range must be two different numbers > 0.*got '0..2'"),
        (["gravity=2..2:3"], "two different numbers > 0"),
        (["gravity=a..b:3"], "two different numbers > 0"),
        (["gravity=1e29..1e31:3"], "must be a number >= 0 and <= 1e.30.*got 1e.31"),
        (["schedule=1..2:3"], "a range must be of numbers"),
        (["schedule=fast"], "must be one of 'constant'.*; got 'fast'"),
        (["average=perhaps"], "perhaps: average must be true or false; got 'perhaps'"),
        (["gravity=1,1"], "1.0 is given twice"),
        (["gravity=1", "gravity=2"], "gravity is already in the grid"),
        (["eta0=1,2"], "eta0 is also given by --eta0"),
    ],
)
def test_invalid_grids(texts, message):
    with pytest.raises(ParameterError, match=message):
        grid_of("truncated-gradient", texts, {"eta0": "1"})
