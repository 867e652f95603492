"""Values of the paper's Tables 2, 3 and 4: mean and standard deviation over 50 orders."""

from __future__ import annotations

RULES = ("SGD", "TG", "RDA", "FOBOS", "STSGD")  # the order of the paper's columns

_ERRORS = {  # Table 2, %
    ("rcv1", "hinge"): "2.86 .08 6.59 .09 4.62 .10 8.44 .15 3.01 .04",
    ("dexter", "hinge"): "7.77 .96 8.37 .91 11.42 .59 10.91 1.21 6.58 .57",
    ("dorothea", "hinge"): "6.11 .60 6.83 1.23 6.83 .18 8.51 1.96 5.14 .43",
    ("gisette", "hinge"): "2.71 .43 6.32 3.02 2.40 .45 5.50 1.20 3.05 .30",
    ("arcene", "hinge"): "19.26 3.67 22.06 8.08 22.10 4.00 18.72 3.26 17.60 2.62",
    ("rcv1", "logistic"): "3.68 .07 18.55 .78 5.69 .08 14.18 .39 3.19 .05",
    ("dexter", "logistic"): "7.91 .36 10.25 .58 9.41 .68 10.45 .81 6.41 .43",
    ("dorothea", "logistic"): "6.26 .62 7.29 1.28 6.87 .31 7.15 1.35 5.47 .35",
    ("gisette", "logistic"): "2.52 .29 6.35 4.08 2.21 .20 5.98 .85 2.11 .26",
    ("arcene", "logistic"): "17.38 2.93 19.48 5.01 21.62 2.05 18.44 3.11 13.38 1.26",
}
_NONZEROS = {  # Table 3, %
    ("rcv1", "hinge"): "63.68 .34 6.95 .42 11.38 .10 5.01 .28 .86 .10",
    ("dexter", "hinge"): "29.46 .35 14.74 .82 1.61 .06 37.69 2.43 1.98 .15",
    ("dorothea", "hinge"): "39.84 .62 18.62 5.94 .55 .02 14.89 3.37 6.68 .09",
    ("gisette", "hinge"): "90.88 .21 63.8 3.72 17.45 .43 61.81 3.94 3.84 .34",
    ("arcene", "hinge"): "98.22 .07 61.08 25.55 12.15 .90 54.5 13.37 3.67 .40",
    ("rcv1", "logistic"): "82.31 0 2.75 .35 6.98 .05 2.89 .29 1.44 .12",
    ("dexter", "logistic"): "38.76 0 13.91 .71 4.84 .14 30.21 1.87 1.32 .13",
    ("dorothea", "logistic"): "68.63 0 19.31 3.00 .43 .01 20.4 3.51 1.67 .47",
    ("gisette", "logistic"): "93.96 0 66.31 3.31 14.99 .34 58.83 3.44 3.22 .49",
    ("arcene", "logistic"): "98.36 0 88.34 4.38 12.71 .27 45.96 9.76 5.35 .24",
}
_KAPPAS = {  # Table 4: TG, STSGD
    ("rcv1", "hinge"): ".38 .44",
    ("dexter", "hinge"): ".46 .61",
    ("dorothea", "hinge"): ".19 .52",
    ("gisette", "hinge"): ".48 .60",
    ("arcene", "hinge"): ".26 .55",
    ("rcv1", "logistic"): ".29 .60",
    ("dexter", "logistic"): ".23 .58",
    ("dorothea", "logistic"): ".19 .33",
    ("gisette", "logistic"): ".54 .54",
    ("arcene", "logistic"): ".35 .69",
}

Cell = tuple[str, str]  # data set, loss
Pair = tuple[float, float]  # mean, standard deviation


def _pairs(row: str) -> dict[str, Pair]:
    values = [float(value) for value in row.split()]
    return dict(zip(RULES, zip(values[::2], values[1::2], strict=True), strict=True))


ERRORS: dict[Cell, dict[str, Pair]] = {cell: _pairs(row) for cell, row in _ERRORS.items()}
NONZEROS: dict[Cell, dict[str, Pair]] = {cell: _pairs(row) for cell, row in _NONZEROS.items()}
KAPPAS: dict[Cell, dict[str, float]] = {
    cell: dict(zip(("TG", "STSGD"), map(float, row.split()), strict=True))
    for cell, row in _KAPPAS.items()
}
