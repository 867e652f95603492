"""How the rejection rate falls as features are purged (Figure 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.record import About, Record, main, verdict_of
from experiments.stabilized.protocol import Rows, rows_of
from thresher import StabilizedClassifier, _core
from thresher.data import as_batch
from thresher.plots import style
from thresher.rules import core_args

ABOUT = About(
    "rejection_rate",
    paper="Ma, Zheng 2017",
    shows="Figure 2",
    title="the rejection rate as a function of the share of features left",
    parameters={"beta_0": 0.7, "gamma": [-5.0, 0.0, 5.0], "passes": 5, "pi_0": 0.6},
    quick={"passes": 1},
)


def run(record: Record) -> None:
    """Train with each gamma; compare the rates of the stages with the formulas."""
    beta_0, gammas = record.parameters["beta_0"], record.parameters["gamma"]
    rows = rows_of("dexter")
    record.uses("dexter", rows.X, rows.y)
    found = {gamma: _stages(rows, gamma, record.parameters) for gamma in gammas}
    half = ", ".join(f"{phi(0.5, beta_0, g):.3g} (gamma = {g:g})" for g in gammas)
    record.say(
        "As printed, equation (12) is 0 if all features are left and beta_0 if none is, in both "
        "branches: the opposite of the paper's text and figure. With d and 1 - d exchanged, it "
        "fits both. Points are the rates of the stages of the published rule, trained on dexter "
        "with logistic loss; lines are the corrected formula. By definition, the rate is beta_0 "
        "while all features are left and falls to 0 with them. A positive gamma lowers it "
        f"quickly, a negative gamma keeps it high: at half of the features it is {half}."
    )
    shares = np.linspace(0, 1, 11)
    record.table(
        "Rejection rate by share of features left",
        ["share", *(f"gamma = {g:g}, {kind}" for g in gammas for kind in ("corrected", "printed"))],
        [
            [d, *(value for g in gammas for value in (phi(d, beta_0, g), phi(1 - d, beta_0, g)))]
            for d in shares
        ],
    )
    record.table(
        "Stages of the published rule",
        ["gamma", "stages", "smallest share left", "largest difference from the formula"],
        [
            [gamma, len(seen), min(d for d, _ in seen), _off(seen, beta_0, gamma)]
            for gamma, seen in found.items()
        ],
    )
    record.figure("Rejection rate against the share of features left", _picture(found, beta_0))
    off = max(_off(seen, beta_0, gamma) for gamma, seen in found.items())
    record.claim(
        "The stages of the library's published rule have the rejection rate of Figure 2",
        paper="Figure 2, whose formula is (12) with d and 1 - d exchanged",
        ours=f"{sum(map(len, found.values()))} stages, off by at most {off:.2g}",
        verdict=verdict_of(float(off < 1e-6)),
        own=True,
    )


def phi(d: float, beta_0: float, gamma: float) -> float:
    """Return the corrected rate; for 1 - d, it is the printed one.

    Parameters
    ----------
    d : float
        Share of features left.
    beta_0, gamma : float
    """
    if gamma >= 0:
        return float(beta_0 * (np.exp(-gamma * (1 - d)) - (1 - d) * np.exp(-gamma)))
    return float(beta_0 * np.log1p(-gamma * d) / np.log1p(-gamma))


def _stages(rows: Rows, gamma: float, parameters: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the share of features left and the rejection rate after each stage."""
    rule = StabilizedClassifier(
        variant="paper", annealing=gamma, rejection=parameters["beta_0"], keep=parameters["pi_0"]
    )
    numbers, words = core_args.stabilized_parameters(rule.get_params(), 0, len(rows.y))
    learner = _core.make_stabilized("paper", rule.dtype, rows.X.shape[1], numbers, words)
    batch, seen = as_batch(rows.X), []
    batch.set_targets(rows.y)

    def see(stage: _core.Stage) -> bool:
        seen.append((stage.d, stage.beta))
        return True

    learner.learn(batch, parameters["passes"], 0.0, 1, see)
    return seen


def _off(seen: list[tuple[float, float]], beta_0: float, gamma: float) -> float:
    return max(abs(beta - phi(d, beta_0, gamma)) for d, beta in seen)


def _picture(found: dict[float, list[tuple[float, float]]], beta_0: float) -> Any:
    ax = style.axes()
    shares = np.linspace(0, 1, 201)
    for number, (gamma, seen) in enumerate(found.items()):
        look = style.series(number)
        marker = look.pop("marker")
        ax.plot(shares, [phi(d, beta_0, gamma) for d in shares], label=f"gamma = {gamma:g}", **look)
        ax.plot(*zip(*seen, strict=True), color=look["color"], marker=marker, linestyle="")
    ax.set(xlabel="share of the features left, d", ylabel="rejection rate", xlim=(1.04, -0.04))
    ax.legend(frameon=False)
    return ax.figure


if __name__ == "__main__":
    main(ABOUT, run)
