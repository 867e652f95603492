"""Averages and centring that touch only the features of a row, against dense arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from experiments.averaged.dense import averaged
from experiments.record import About, Record, main, verdict_of
from thresher import AveragedSGDClassifier, AveragedSGDRegressor
from thresher.plots import style

ABOUT = About(
    name="exactness",
    paper="Dekel 2017",
    shows="Algorithms 2 and 3",
    title="averaged and centred SGD equal a dense implementation",
    parameters={
        "losses": ["absolute", "squared", "hinge", "logistic", "huber", "epsilon_insensitive"],
        "rows": 2000,
        "features": 1000,
        "density": 0.01,
        "passes": 3,
        "lambda": [0.1, 1.0],
        "tolerance": 1e-10,
        "draws": 5,
    },
    quick={"rows": 200, "features": 100, "density": 0.05, "draws": 1},
)
_OF_NUMBERS = ("absolute", "squared", "huber", "epsilon_insensitive")


def run(record: Record) -> None:
    """Compare weights and intercepts over losses, random draws and values of lambda."""
    chosen = record.parameters
    rows = []
    for loss in chosen["losses"]:
        for alpha in chosen["lambda"]:
            for center in (False, True):
                apart = max(
                    _difference(record, loss, alpha, center, draw)
                    for draw in range(chosen["draws"])
                )
                rows.append([loss, alpha, "yes" if center else "no", apart])
    record.say(
        "The four losses of the paper, and two more. Rows are random and sparse, of norm 1, with "
        "three dense columns, so that the mean is not near 0. The dense implementation adds up "
        "all iterates, and centres by subtracting the mean from every row as an array; it shares "
        "no code with the core. Differences are relative to the largest weight. All arithmetic is "
        "in double precision. The values of lambda are large enough that a step of 1/(lambda t) "
        "does not amplify rounding errors. With much smaller values, the first steps of any two "
        "implementations differ by chance, whatever is averaged. The loop starts as in the text "
        "of the paper, not as in its listing, which divides by 0 at t = 1."
    )
    head = ["loss", "lambda", "centred", "largest difference"]
    record.table("Largest difference of a weight or the intercept", head, rows)
    record.figure("Differences", _figure(rows, chosen["tolerance"]))
    for center, what in ((False, "the average of all iterates"), (True, "centring")):
        mine = [row[3] for row in rows if row[2] == ("yes" if center else "no")]
        exact = float(np.mean(np.array(mine) <= chosen["tolerance"]))
        record.claim(
            f"{what} is exact, at no cost in dense operations",
            paper="by proof",
            ours=f"within {chosen['tolerance']:g} of the dense result in "
            f"{exact * len(mine):.0f} of {len(mine)} cases; at most {max(mine):.1e} apart",
            verdict=verdict_of(exact),
        )


def _difference(record: Record, loss: str, alpha: float, center: bool, draw: int) -> float:
    chosen = record.parameters
    X, y = _rows(chosen, loss, record.seed + draw)
    if draw == 0 and alpha == chosen["lambda"][0] and not center:
        record.uses(f"random rows, {loss}", X, y)
    cls = AveragedSGDRegressor if loss in _OF_NUMBERS else AveragedSGDClassifier
    sparse = cls(
        loss=loss, alpha=alpha, center=center, passes=chosen["passes"], shuffle=False,
        dtype="float64", tol=None,
    ).fit(X, y)  # fmt: skip
    w, b = averaged(X.toarray(), y, loss=loss, alpha=alpha, center=center, passes=chosen["passes"])
    apart = np.abs(np.ravel(sparse.coef_) - w).max()
    return float(max(apart, abs(np.ravel(sparse.intercept_)[0] - b)) / np.abs(w).max())


def _rows(chosen: dict[str, Any], loss: str, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    shape = (chosen["rows"], chosen["features"])
    X = sp.random(*shape, chosen["density"], random_state=rng, data_rvs=rng.standard_normal)
    X = X.tolil()
    X[:, :3] = rng.normal(2.0, 1.0, (shape[0], 3))
    X = normalize(X.tocsr())
    score = X @ rng.standard_normal(shape[1]) + rng.standard_normal(shape[0])
    score -= np.median(score)
    return X, score if loss in _OF_NUMBERS else np.where(score > 0, 1.0, -1.0)


def _figure(rows: list[list[Any]], tolerance: float) -> Any:
    ax = style.axes(wide=6.4, high=3.4)
    losses = list(dict.fromkeys(row[0] for row in rows))
    for number, center in enumerate(("no", "yes")):
        mine = [row for row in rows if row[2] == center]
        look = {**style.series(number), "linestyle": "none"}
        at = [losses.index(row[0]) + 0.12 * (2 * number - 1) for row in mine]
        label = "centred" if center == "yes" else "not centred"
        ax.plot(at, [max(row[3], 1e-17) for row in mine], label=label, **look)
    ax.axhline(tolerance, color=style.SOFT, linewidth=1)
    ax.set_yscale("log")
    ax.set_ylim(1e-17, 10 * tolerance)
    ax.set_xticks(range(len(losses)), [loss.replace("_", "\n") for loss in losses])
    ax.set_ylabel("largest relative difference")
    ax.legend(frameon=False)
    return ax.figure


if __name__ == "__main__":
    main(ABOUT, run)
