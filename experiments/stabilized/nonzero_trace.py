"""The number of nonzero weights after each step (Figure 1)."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.record import About, Record, main, verdict_of
from experiments.stabilized.protocol import Rows, plain, rows_of
from thresher import Progress, StabilizedClassifier
from thresher.plots import style

ABOUT = About(
    "nonzero_trace",
    paper="Ma, Zheng 2017",
    shows="Figure 1",
    title="the number of nonzero weights in the last 1,000 steps, dexter",
    parameters={
        "steps": 1600, "last": 1000, "eta": 0.1, "g_0": 0.001, "K": 5, "n_K": 5,
        "beta_0": [0.7, 0.1],
    },
    quick={"steps": 600, "last": 100},
)  # fmt: skip
_LOSSES = ("hinge", "logistic")
_LOW = "STSGD, low"

Trace = tuple[np.ndarray, np.ndarray, float]  # steps, % of nonzero weights, final test error in %


def run(record: Record) -> None:
    """Train both rules with both losses; write a table, the plot and the claims."""
    rows = rows_of("dexter")
    record.uses("dexter", rows.X, rows.y, rows.X_test, rows.y_test)
    found = {}
    for loss in _LOSSES:
        found[loss, "TG"] = _truncated(rows, loss, record)
        for rule, beta in zip(("STSGD", _LOW), record.parameters["beta_0"], strict=True):
            found[loss, rule] = _stabilized(rows, loss, beta, record)
    record.say(
        f"The last {record.parameters['last']:,} of {record.parameters['steps']:,} steps. TG, the "
        "truncated gradient, is measured after every step. STSGD, the paper's rule, is measured "
        "after every stage of 25 steps of each of its 16 paths. Its model is the mean of the "
        "paths, and the features that are not yet purged are counted. Percentages refer to the "
        "20,000 features. Test errors are those of the model after the last step. The purging of "
        "STSGD is nearly finished before the steps shown: its line is flat because almost no "
        "features are removed any more. This says nothing about the quality of the model. STSGD "
        f"has the paper's rejection rate, {record.parameters['beta_0'][0]:g}, and in the lines "
        f"called low {record.parameters['beta_0'][1]:g}."
    )
    record.table(
        f"Nonzero weights in the last {record.parameters['last']:,} steps, %",
        ["loss", "rule", "mean", "standard deviation", "smallest", "largest", "test error, %"],
        [
            [loss, rule, at.mean(), at.std(ddof=1), at.min(), at.max(), error]
            for (loss, rule), (_, at, error) in found.items()
        ],
    )
    record.figure("Nonzero weights in the last steps", _picture(found))
    _claims(record, found)


def _truncated(rows: Rows, loss: str, record: Record) -> Trace:
    at = record.parameters
    model = plain(loss, eta0=at["eta"], gravity=at["g_0"] / at["eta"])
    rng, passes = np.random.default_rng(record.seed), -(-at["steps"] // len(rows.y))
    order = np.concatenate([rng.permutation(len(rows.y)) for _ in range(passes)])[: at["steps"]]
    first = at["steps"] - at["last"]
    model.partial_fit(rows.X[order[:first]], rows.y[order[:first]], classes=[-1.0, 1.0])
    shares = []
    for row in order[first:]:
        model.partial_fit(rows.X[[row]], rows.y[[row]])
        shares.append(100 * model.model_.nnz / rows.width)
    return np.arange(first, at["steps"]) + 1, np.array(shares), _error(model, rows)


def _error(model: Any, rows: Rows) -> float:
    return 100 * float(np.mean(rows.y_test * model.decision_function(rows.X_test) <= 0))


def _stabilized(rows: Rows, loss: str, beta: float, record: Record) -> Trace:
    at, seen = record.parameters, {}

    def see(progress: Progress) -> bool:
        seen[progress.examples] = progress.nonzeros
        return progress.examples >= at["steps"]

    rule = StabilizedClassifier(
        variant="paper", loss=loss, eta0=at["eta"], burst=at["K"], bursts=at["n_K"],
        rejection=beta, callback=see, random_state=record.seed,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a gravity of 0, which hinge loss gives
        rule.fit(rows.X, rows.y)
    steps = np.array([step for step in seen if step >= at["steps"] - at["last"]])
    shares = np.array([100 * seen[step] / rows.width for step in steps])
    return steps, shares, _error(rule, rows)


def _picture(found: dict[tuple[str, str], Trace]) -> Any:
    figure, all_axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained", sharey=True)
    highest = max(shares.max() for _, shares, _ in found.values())
    for loss, ax in zip(_LOSSES, all_axes, strict=True):
        style.axes(ax)
        for number, rule in enumerate(("TG", "STSGD", _LOW)):
            look = style.series(number)
            look.pop("marker")
            ax.plot(*found[loss, rule][:2], label=rule, linewidth=1.2, **look)
        ax.set(title=f"{loss} loss", xlabel="step", ylim=(0, 1.1 * highest))
        ax.legend(frameon=False)
    all_axes[0].set_ylabel("nonzero weights, % of 20,000")
    return figure


def _claims(record: Record, found: dict[tuple[str, str], Trace]) -> None:
    swings = {loss: np.ptp(found[loss, "TG"][1]) for loss in _LOSSES}
    record.claim(
        "TG's number of nonzero weights oscillates, within 10% of the features",
        paper="within 10%, K = 5",
        ours="; ".join(
            f"{loss}: mean {found[loss, 'TG'][1].mean():.3g}%, from "
            f"{found[loss, 'TG'][1].min():.3g} to {found[loss, 'TG'][1].max():.3g}%"
            for loss in _LOSSES
        ),
        verdict=verdict_of(float(np.mean([0.5 < swing <= 10 for swing in swings.values()]))),
    )
    for rule, (text, measure) in product(
        ("STSGD", _LOW),
        (
            ("has fewer nonzero weights than TG", np.mean),
            ("keeps the number of nonzero weights steadier than TG", partial(np.std, ddof=1)),
        ),
    ):
        values = {key: float(measure(trace)) for key, (_, trace, _) in found.items()}
        true = [values[loss, rule] < values[loss, "TG"] for loss in _LOSSES]
        low = "" if rule == "STSGD" else ", with a low rejection rate,"
        record.claim(
            f"STSGD as published{low} {text}",
            paper="high sparsity and high stability",
            ours=f"{'mean' if measure is np.mean else 'standard deviation'}, STSGD / TG: "
            + "; ".join(
                f"{loss} {values[loss, rule]:.3g} / {values[loss, 'TG']:.3g}%, with test errors "
                f"of {found[loss, rule][2]:.3g} / {found[loss, 'TG'][2]:.3g}%"
                for loss in _LOSSES
            ),
            verdict=verdict_of(float(np.mean(true))),
            own=rule == _LOW,
        )


if __name__ == "__main__":
    main(ABOUT, run)
