"""Which features are selected, by the share of rows that have them (Figure 3)."""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.record import About, Record, main, verdict_of
from experiments.stabilized.protocol import PUBLISHED, ROBUST, plain, rows_of
from thresher import StabilizedClassifier
from thresher.plots import style
from thresher.stability import DensityBins, selected_by_density

ABOUT = About(
    "feature_density",
    paper="Ma, Zheng 2017",
    shows="Figure 3",
    title="share of the features that are selected, by their density, dorothea",
    parameters={
        "eta": 0.1,
        "g_0": 0.003,
        "K": 5,
        "beta_0": [0.7, 0.1],
        "passes": 10,
        "edges": [0.0005, *(round(0.01 * k, 2) for k in range(1, 11))],
    },
    quick={"passes": 1},
)
TG, LOW = "TG", f"{PUBLISHED}, low"
_LOSSES = ("hinge", "logistic")
_RARE, _DENSE = 0.01, 0.05  # compare shares below the first and above the second

Results = dict[tuple[str, str], DensityBins]


def run(record: Record) -> None:
    """Train all rules with both losses; write tables, the plot and the claims."""
    rows, at = rows_of("dorothea"), record.parameters
    record.uses("dorothea", rows.X, rows.y)
    found: Results = {}
    for loss in _LOSSES:
        for rule, estimator in (
            (TG, plain(loss, eta0=at["eta"], gravity=at["g_0"] / at["eta"], passes=at["passes"])),
            *(
                (
                    rule,
                    StabilizedClassifier(
                        variant="paper", loss=loss, rejection=beta, passes=at["passes"]
                    ),
                )
                for rule, beta in zip((PUBLISHED, LOW), at["beta_0"], strict=True)
            ),
            (ROBUST, StabilizedClassifier(loss=loss)),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about a gravity of 0, which hinge loss gives
                estimator.set_params(random_state=record.seed).fit(rows.X, rows.y)
            found[loss, rule] = selected_by_density(rows.X, estimator.model_, at["edges"])
    record.say(
        "One order of the training rows of dorothea. TG, the truncated gradient, has the "
        "shrinkage at which it keeps about as many features as in the paper, 19%. STSGD as "
        f"published has the paper's rejection rate, {at['beta_0'][0]:g}, and in the lines called "
        f"low {at['beta_0'][1]:g}. The density of a feature is the share of training rows in "
        "which it is nonzero. The robust variant of STSGD does not evaluate features of fewer than "
        "five rows, a density of 0.6% here, so it selects none of them. Densities end at 10 %, in "
        f"the claims and in the plot: {_beyond(rows.X, at['edges'][-1])} features of higher "
        "density are not counted."
    )
    first = next(iter(found.values()))
    record.table(
        "Selected features, % of the features of this density",
        ["density", "features", *(f"{rule}, {loss}" for loss, rule in found)],
        [
            [
                f"{100 * first.edges[k]:g} to {100 * first.edges[k + 1]:g}%",
                first.features[k],
                *(100 * bins.selected_share[k] for bins in found.values()),
            ]
            for k in range(len(first.features))
        ],
    )
    record.figure("Share of features selected, by density; larger: more features", _picture(found))
    _claims(record, found)


def _beyond(X: Any, density: float) -> int:
    return int(np.sum(np.bincount(X.indices, minlength=X.shape[1]) > density * X.shape[0]))


def _picture(found: Results) -> Any:
    figure, all_axes = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained", sharey=True)
    for loss, ax in zip(_LOSSES, all_axes, strict=True):
        style.axes(ax)
        for number, rule in enumerate((TG, PUBLISHED, LOW, ROBUST)):
            bins, look = found[loss, rule], style.series(number)
            middles = 50 * (bins.edges[:-1] + bins.edges[1:])
            shares, sizes = 100 * bins.selected_share, bins.feature_share
            ax.plot(middles, shares, color=look["color"], linestyle=look["linestyle"])
            ax.scatter(
                middles, shares, s=20 + 400 * sizes, color=look["color"], marker=look["marker"],
                label=rule,
            )  # fmt: skip
        ax.set(
            title=f"{loss} loss",
            xlabel="density of the feature, % of rows",
            ylim=(-8, 90),
            xlim=(-0.5, 10.3),
        )
    all_axes[0].set_ylabel("features selected, %")
    handles, names = all_axes[0].get_legend_handles_labels()
    legend = all_axes[0].legend(handles, names, frameon=False)
    for handle in legend.legend_handles:
        handle.set_sizes([40])
    return figure


def _claims(record: Record, found: Results) -> None:
    linear = {loss: _line(found[loss, TG]) for loss in _LOSSES}
    record.claim(
        "The share of features that TG selects grows with their density",
        paper="Figure 3: more likely to select dense features",
        ours=_ratios(found, TG),
        verdict=verdict_of(float(np.mean([_ratio(found[loss, TG]) > 2 for loss in _LOSSES]))),
    )
    record.claim(
        "The share of features that TG selects is linear in their density",
        paper="Figure 3: a linear relationship",
        ours="R^2 of a straight line through the shares, weighted by the number of features "
        "(criterion: at least 0.9): "
        + ", ".join(f"{loss} {value:.2f}" for loss, value in linear.items()),
        verdict=verdict_of(float(np.mean([value >= 0.9 for value in linear.values()]))),
    )
    for rule, name in (
        (PUBLISHED, "STSGD as published"),
        (LOW, "STSGD as published, with a low rejection rate,"),
        (ROBUST, "The robust STSGD"),
    ):
        even = [0.5 <= _ratio(found[loss, rule]) <= 2 for loss in _LOSSES]
        record.claim(
            f"{name} selects features of all densities equally",
            paper="Figure 3: approximately uniform",
            ours=_ratios(found, rule),
            verdict=verdict_of(float(np.mean(even))),
            own=rule != PUBLISHED,
        )


def _shares(bins: DensityBins) -> tuple[float, float]:
    """Return the shares selected, in percent, of rare and of dense features."""
    rare, dense = bins.edges[1:] <= _RARE, bins.edges[:-1] >= _DENSE
    low, high = (100 * bins.selected[at].sum() / bins.features[at].sum() for at in (rare, dense))
    return float(low), float(high)


def _ratio(bins: DensityBins) -> float:
    low, high = _shares(bins)
    return high / low if low else np.inf


def _ratios(found: Results, rule: str) -> str:
    said = []
    for loss in _LOSSES:
        low, high = _shares(found[loss, rule])
        said.append(
            f"{loss} {low:.2g}% of those below 1% density, {high:.2g}% of those of 5 to 10%"
        )
    return "selected: " + "; ".join(said)


def _line(bins: DensityBins) -> float:
    """Return R^2 of a straight line through the shares, weighted by the features of the bins."""
    middles = (bins.edges[:-1] + bins.edges[1:]) / 2
    shares, weights = bins.selected_share, bins.features
    line = np.polyval(np.polyfit(middles, shares, 1, w=np.sqrt(weights)), middles)
    mean = np.average(shares, weights=weights)
    return float(
        1 - np.sum(weights * (shares - line) ** 2) / np.sum(weights * (shares - mean) ** 2)
    )


if __name__ == "__main__":
    main(ABOUT, run)
