"""The result of a discovery as facts, sentences and a table of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher._version import __version__
from thresher.discovery.findings import Finding, label_text
from thresher.printable import printable

if TYPE_CHECKING:
    from thresher.discovery.decision import Decision
    from thresher.discovery.feature_discovery import FeatureDiscovery

WORDS = {
    "z": "the evidence that the label depends on the feature beyond what the others explain",
    "q": "expected share of false features among those at least as strong",
}
PROMISE = (
    "A selected feature is false if the label does not depend on it given the other features. The "
    "expected number, or share, of false features is approximately as stated, if rows are "
    "independent and a linear model captures what the other features do."
)
LIMITS = (
    "It is not a theorem, and not a guarantee for a single data set: it is an expectation.",
    "It is not a statement about causes. A feature may stand in for a feature that is not in the "
    "data.",
    "Near-copies of a feature cannot be told apart: each may be selected for the others. The form "
    "joint drops most stand-ins.",
    "Something that is not a feature but has an effect, such as the length of a row, may make "
    "features look as if they mattered. A column for it repairs this.",
    "Repeated rows count several times, and then many selected features may be false.",
    "A stream (one reading) needs rows in random order.",
    "A feature that is not selected may matter: with few rows, most effects cannot be seen.",
)


def shown_findings(discovery: FeatureDiscovery, n: int | None = None) -> list[Finding]:
    """Return findings with features as the files call them: names, or numbers of the files.

    Parameters
    ----------
    discovery : FeatureDiscovery
    n : int, optional
        Number of strongest features; by default the selected ones.
    """
    first = discovery.decision_.first
    return [
        replace(found, feature=found.feature + first) if isinstance(found.feature, int) else found
        for found in discovery.findings(n)
    ]


def selected_groups(discovery: FeatureDiscovery) -> list[dict[str, Any]]:
    """Return the selected groups of features, strongest first; no groups: an empty list.

    Parameters
    ----------
    discovery : FeatureDiscovery
    """
    decision = discovery.decision_
    if decision.groups is None:
        return []
    rates, labels = decision.groups.rates, decision.groups.labels
    sizes = np.bincount(decision.groups.members, minlength=len(labels))
    found = np.flatnonzero(np.isin(labels, decision.selected_groups))
    order = found[np.argsort(-rates.strength[found], kind="stable")]
    return [
        {
            "group": _plain(labels[at]),
            "features": int(sizes[at]),
            "strength": float(rates.strength[at]),
            "q": float(rates.qvalues[at]),
            "p": float(rates.pvalues[at]),
            "expected_false": float(rates.expected_false[at]),
        }
        for at in order.tolist()
    ]


def facts_of(discovery: FeatureDiscovery) -> dict[str, Any]:
    """Return the result without the features, in types that JSON has.

    Parameters
    ----------
    discovery : FeatureDiscovery
    """
    decision = discovery.decision_
    plan = decision.plan
    classes = decision.classes
    facts: dict[str, Any] = {
        "made_by": f"thresher {__version__}",
        "parameters": {
            name: _plain(value) for name, value in discovery.get_params(deep=False).items()
        },
        "form": decision.form,
        "task": decision.task,
        "classes": None if classes is None else [_plain(label) for label in classes],
        "folds": plan.folds if plan.form == "crossfit" else None,
        "redraws": plan.redraws,
        "random_state": _plain(discovery.random_state),
        "derived_seed": plan.seed,  # from the random_state; an unknown one if that is None
        "n_rows": int(discovery.n_rows_),
        "n_features_seen": len(decision.keys),
        "n_selected": len(decision.chosen),
        "expected_false": decision.expected_false,
        "checks": [check.to_json() for check in decision.checks],
    }
    if decision.groups is not None:
        facts["selected_groups"] = selected_groups(discovery)
    return facts


def _plain(value: Any) -> Any:
    """Return a JSON type."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return f"{len(value):,} entries"
    return type(value).__name__


# ---- texts ---------------------------------------------------------------------------------------


def outcome(discovery: FeatureDiscovery) -> str:
    """Return a sentence on how many features are selected, or why none is.

    Parameters
    ----------
    discovery : FeatureDiscovery
    """
    decision = discovery.decision_
    count, seen = len(decision.chosen), len(decision.keys)
    false = f"expected false (no effect given the others): {_false_text(decision)}"
    if count and decision.groups is not None:
        groups, every = len(decision.selected_groups), len(decision.groups.labels)
        return (
            f"{groups:,} of {every:,} groups {'is' if groups == 1 else 'are'} selected, with "
            f"{count:,} {'feature' if count == 1 else 'features'}; groups {false}"
        )
    if count:
        return f"{count:,} of {seen:,} features {'is' if count == 1 else 'are'} selected; {false}"
    if decision.groups is not None:
        return "no group of features is selected: no group stands out from redrawn labels"
    strongest = shown_findings(discovery, 1)
    if not strongest or strongest[0].z == 0:
        return "no feature is selected: no feature differs from row to row"
    best = strongest[0]
    return (
        f"no feature is selected: the strongest one, {best.feature}, has z = {best.z:.1f}, and "
        f"{number_text(best.expected_false)} of {seen:,} features without any effect would look "
        f"as strong. Either there is no signal, or there are too few rows to see it"
    )


def _false_text(decision: Decision) -> str:
    """Return the expected number of false features as text."""
    if decision.expected_false * decision.redraws < 1.5:  # no redraw is as strong
        return f"fewer than {2 / decision.redraws:.2g}"
    return f"about {number_text(decision.expected_false)}"


def number_text(value: float) -> str:
    """Return an expected number as text, with two digits if it is small.

    Parameters
    ----------
    value : float

    Examples
    --------
    >>> from thresher.discovery.summary import number_text
    >>> number_text(0.123), number_text(1.84), number_text(1843.2)
    ('0.12', '1.8', '1,843')
    """
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def direction_text(found: Finding, several: bool) -> str:
    """Return the direction of a finding; with several classes, also the class.

    Parameters
    ----------
    found : Finding
    several : bool
        Whether there are more than two classes.
    """
    return f"{found.direction} {label_text(found.label)}" if several else found.direction


def group_text(group: Any) -> str:
    """Return the text of a group of features."""
    return str(group) or "(no namespace)"


def legend(discovery: FeatureDiscovery, findings: Sequence[Finding]) -> str:
    """Return what the columns of the table mean.

    Parameters
    ----------
    discovery : FeatureDiscovery
    findings : sequence of Finding
        Those of the table.
    """
    classes = discovery.decision_.classes
    what = "the target"
    if classes is not None:
        what = (
            f"the odds of {label_text(classes[1])}" if len(classes) == 2 else "the odds of a class"
        )
    words = WORDS
    if discovery.decision_.groups is not None:
        words = {**WORDS, "q of group": "expected share of false groups among those at least as "
                 "strong"}  # fmt: skip
        words.pop("q")
    if any(found.weight is not None for found in findings):
        words = {**words, "weight": "in one fit of all selected features"}
    return f"raises, lowers: {what}; " + "; ".join(f"{n}: {text}" for n, text in words.items())


def _weight_text(weight: float | None) -> str:
    return "" if weight is None else f"{weight:+.3g}"


def table_of(findings: Sequence[Finding], several: bool) -> str:
    """Return a table as text.

    Parameters
    ----------
    findings : sequence of Finding
    several : bool
        Whether there are more than two classes.

    Examples
    --------
    >>> from thresher.discovery.findings import Finding
    >>> from thresher.discovery.summary import table_of
    >>> one = Finding("cat", 3, "raises", 1, 22, 3.12, 0.08, 0.0004, 2.9, 3092, True, 1.25, 3.0)
    >>> print(table_of([one], several=False))
    feature  direction  rows    z     q  weight
    cat      raises       22  3.1  0.08   +1.25
    """
    fitted = any(found.weight is not None for found in findings)
    grouped = any(found.group is not None for found in findings)
    head = ["feature", "direction", *(["group"] if grouped else []), "rows", "z"]
    head += ["q of group" if grouped else "q", *(["weight"] if fitted else [])]
    lines = [
        [
            str(found.feature),
            direction_text(found, several),
            *([group_text(found.group)] if grouped else []),
            f"{found.rows:,}",
            f"{found.z:.1f}",
            f"{found.q:.2g}",
            *([_weight_text(found.weight)] if fitted else []),
        ]
        for found in findings
    ]
    if not all(found.selected for found in findings):
        head.append("selected")
        for line, found in zip(lines, findings, strict=True):
            line.append("yes" if found.selected else "no")
    lines = [[printable(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:<{width}}" if at < 2 + grouped else f"{cell:>{width}}"
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (head, *lines)
    )
