"""The HTML page of a discovery: what was found, how sure it is, and what was checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.discovery.findings import Finding
from thresher.discovery.summary import (
    LIMITS,
    PROMISE,
    direction_text,
    facts_of,
    group_text,
    legend,
    number_text,
    outcome,
    selected_groups,
    shown_findings,
)
from thresher.report.charts import ChartPoint, lines, scatter
from thresher.report.page import Section, facts, note, page, text, tiles
from thresher.report.tables import Cell, TableCell, table

if TYPE_CHECKING:
    from thresher.discovery.feature_discovery import FeatureDiscovery

_MOST = 2000  # features in the table
_SENTENCES = 100  # features with a sentence
_DRAWN = 400  # selected features in the chart; of the others, the same number
_LABELLED = 12  # features with their names in the chart
_LONG = 24  # letters of a name in the chart
_WIDEST = 1.5  # effects of features that are not selected, relative to those selected
_CURVE = 200  # points of the curve

# Messages are long: the table scrolls on a narrow screen.
_STYLE = """<style>.thresher .checks td:last-child { min-width: 18em; max-width: 52em; }
.thresher .found td:first-child { min-width: 8em; overflow-wrap: anywhere; }
.thresher .said { column-width: 19em; column-gap: 28px; }
.thresher .said details { margin: 0; padding: 2px 0; break-inside: avoid; }
.thresher .said summary { overflow-wrap: anywhere; }
.thresher .said p { margin: 2px 0 8px 16px; font-size: 13.5px; }
@media (max-width: 560px) {
  .thresher .checks td:last-child { min-width: 13.5em; }
  .thresher .found td:first-child { min-width: 5em; }
  .thresher .found .bar { display: none; } .thresher .found .bar + .v { min-width: 0; }
}</style>"""


def page_of(
    discovery: FeatureDiscovery, title: str | None = None, how: Mapping[str, Any] | None = None
) -> str:
    """Return a complete page.

    Parameters
    ----------
    discovery : FeatureDiscovery
    title : str, optional
    how : mapping, optional
        More facts on how the result was made, such as the data and the command.
    """
    found = shown_findings(discovery)
    groups = selected_groups(discovery)
    failed = [check for check in discovery.checks_ if not check.fine]
    first = tiles(_numbers(discovery)) + _STYLE
    first += "".join(f'<p class="warn">{text(f"Warning: {check}")}.</p>' for check in failed)
    sections = [Section("", first)]
    if groups:
        sections.append(Section("Groups", _groups(groups)))
    sections.append(Section("Features", _features(discovery, found)))
    sections += [
        Section("Effect and evidence", _volcano(discovery)),
        Section("False against selected", _curve(discovery)),
    ]
    if found and discovery.decision_.groups is None:
        sections.append(Section("In words", _sentences(discovery, found)))
    sections += [
        Section("What was checked", _checks(discovery)),
        Section("What it promises", _promise()),
        Section("How it was made", facts(_how(discovery, how or {}))),
    ]
    said = outcome(discovery)
    return page(title or "Features that matter", sections, f"{said[0].upper()}{said[1:]}.")


def _numbers(discovery: FeatureDiscovery) -> dict[str, object]:
    """Return the numbers at the top of the page."""
    decision = discovery.decision_
    numbers: dict[str, object] = {}
    unit = "features"
    if decision.groups is not None:
        unit = "groups"
        numbers["selected groups"] = len(decision.selected_groups)
        numbers["features in them"] = len(decision.chosen)
    else:
        numbers["selected features"] = len(decision.chosen)
    if len(decision.chosen):
        numbers[f"{unit} expected to be false"] = number_text(decision.expected_false)
    else:
        numbers["features that occurred"] = len(decision.keys)
    numbers["rows"] = int(discovery.n_rows_)
    made = [check for check in decision.checks if check.checked]
    numbers["checks passed"] = f"{sum(check.fine for check in made)} of {len(made)}"
    return numbers


# ---- tables --------------------------------------------------------------------------------------


def _features(discovery: FeatureDiscovery, found: Sequence[Finding]) -> str:
    """Return the table of the selected features; if there is none, of the strongest ones."""
    remark = ""
    if not found:
        found = shown_findings(discovery, 20)
        if not found:
            return note("No feature occurred.")
        remark = note("No feature is selected. These are the strongest ones.")
    classes = discovery.decision_.classes
    several = classes is not None and len(classes) > 2
    largest = max(abs(one.z) for one in found) or 1.0
    grouped = discovery.decision_.groups is not None
    head = ["feature", "direction", "rows", "z"]
    head += ["group", "q of group", "p of group"] if grouped else ["q", "p"]
    fitted = any(one.weight is not None for one in found)  # with refit, or in the form joint
    head += ["weight", "Wald"] if fitted else []
    rows: list[list[Cell]] = []
    for one in found[:_MOST]:
        row: list[Cell] = [
            str(one.feature),
            direction_text(one, several),
            one.rows,
            TableCell(f"{one.z:+.1f}", one.z, one.z / largest),
            *([group_text(one.group)] if grouped else []),
            TableCell(f"{one.q:.2g}", one.q),
            TableCell(f"{one.p:.2g}", one.p),
        ]
        if fitted:
            row += [_number(one.weight, "+.3g"), _number(one.wald, "+.1f")]
        rows.append(row)
    words = f"{legend(discovery, found)}; p"
    words += " of group: against redraws of groups about" if grouped else ": against redraws of "
    words += " as frequent" if grouped else "features about as frequent"
    if fitted:
        words += "; Wald: the weight over its standard error"
    if len(found) > _MOST:
        remark += note(f"The {_MOST:,} strongest of {len(found):,} features are shown.")
    drawn = table(head, rows, search=len(rows) > 10)
    return f'{remark}<div class="found">{drawn}</div>{note(words + ".")}'


def _number(value: float | None, form: str) -> Cell:
    return None if value is None else TableCell(format(value, form), value)


def _groups(groups: Sequence[Mapping[str, Any]]) -> str:
    rows: list[list[Cell]] = [
        [
            group_text(group["group"]),
            group["features"],
            TableCell(f"{group['strength']:.1f}", group["strength"]),
            TableCell(f"{group['q']:.2g}", group["q"]),
            TableCell(number_text(group["expected_false"]), group["expected_false"]),
        ]
        for group in groups
    ]
    words = (
        "Strength: the sum of z^2 over the features of the group, minus its mean over redraws, in "
        "standard deviations of the redraws. q: expected share of false groups among those at "
        "least as strong."
    )
    head = ["group", "features", "strength", "q", "expected false"]
    return table(head, rows, search=len(rows) > 10) + note(words)


def _sentences(discovery: FeatureDiscovery, found: Sequence[Finding]) -> str:
    decision = discovery.decision_
    parts = []
    for one in found[:_SENTENCES]:
        sentence = " ".join(one.sentence(len(decision.keys), decision.redraws).split())
        parts.append(
            f"<details><summary>{text(str(one.feature))}</summary><p>{text(sentence)}</p></details>"
        )
    more = ""
    if len(found) > _SENTENCES:
        more = note(f"The {_SENTENCES} strongest features are here; why() tells of any other.")
    return f'<div class="said">{"".join(parts)}</div>{more}'


def _checks(discovery: FeatureDiscovery) -> str:
    checks = discovery.checks_
    rows: list[list[Cell]] = [[check.name, check.result, check.message] for check in checks]
    words = "A warning says that more of the selected features than stated may be false, and why."
    drawn = table(["check", "result", "what was measured"], rows)
    return f'<div class="checks">{drawn}</div>{note(words)}'


# ---- charts --------------------------------------------------------------------------------------


def _volcano(discovery: FeatureDiscovery) -> str:
    """Return a chart of evidence against effect; selected features are coloured by direction."""
    decision = discovery.decision_
    order = np.argsort(-np.abs(decision.z), kind="stable")
    chosen = np.isin(order, decision.chosen)
    selected, others = order[chosen][:_DRAWN], order[~chosen]
    if len(selected):  # rare features would make the axis much longer
        widest = _WIDEST * np.abs(decision.effects[selected]).max()
        others = others[np.abs(decision.effects[others]) <= widest]
    strongest, rest = others[: _DRAWN // 2], others[_DRAWN // 2 :]
    step = max(1, len(rest) // (_DRAWN // 2))
    points = [_point(discovery, at, "", "") for at in rest[::step].tolist()]
    points += [_point(discovery, at, "", "") for at in strongest.tolist()]
    for rank, at in enumerate(selected.tolist()[::-1], 1 - len(selected)):
        kind = "s0" if decision.z[at] > 0 else "s1"
        points.append(_point(discovery, at, kind, "label" if -rank < _LABELLED else ""))
    unit = "change of the log-odds" if decision.task == "classification" else (
        "change of the target in standard deviations"
    )  # fmt: skip
    drawn = scatter(
        points,
        x=f"effect: {unit} for one unit of the feature",
        y="evidence: |z|",
        title="Each point is a feature; far up means strong evidence",
        key={"s0": "selected, raises", "s1": "selected, lowers", "": "not selected"},
    )
    words = (
        "The effect is estimated from the residuals that remain without the feature: its weight if "
        "it is added alone. Rare features have large but uncertain effects. "
    )
    if len(points) < len(order):
        words += (
            f"{len(points):,} of {len(order):,} features are drawn: the strongest, and some of the "
            f"others."
        )
    return drawn + note(words)


def _point(discovery: FeatureDiscovery, at: int, kind: str, label: str) -> ChartPoint:
    decision = discovery.decision_
    name = discovery.name_of(int(decision.keys[at]))
    effect, z = float(decision.effects[at]), float(decision.z[at])
    rows = int(decision.rows[at])
    unit = "row" if rows == 1 else "rows"
    about = f"{name}: effect {effect:+.3g}, z = {z:.1f}, {rows:,} {unit}"
    short = name if len(name) <= _LONG else name[: _LONG - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return ChartPoint(effect, abs(z), about, kind, 0.0, short if label else "")


def _curve(discovery: FeatureDiscovery) -> str:
    """Return a chart of the expected number of false features against the number selected."""
    decision = discovery.decision_
    rates, options = decision.rates, decision.options
    unit = "features" if decision.groups is None else "groups"
    if not len(rates.strength):
        return note("No feature occurred.")
    order = np.argsort(-rates.strength, kind="stable")
    expected = rates.expected_false[order]
    number = len(decision.chosen if decision.groups is None else decision.selected_groups)
    reach = min(len(order), max(30, 2 * number))
    at = np.unique(np.linspace(0, reach - 1, min(reach, _CURVE)).astype(int))
    curve = [(float(k + 1), float(expected[k])) for k in at.tolist()]
    series = {f"expected false among the {unit} selected": curve}
    if options.expected_false is not None:
        limit = float(options.expected_false)
        series[f"at most {limit:g}, as asked"] = [(1.0, limit), (float(reach), limit)]
    else:
        share = options.fdr
        series[f"{share:g} of the number selected, as asked"] = [
            (1.0, share),
            (float(reach), share * reach),
        ]
    drawn = lines(
        series,
        x=f"number of {unit} selected, strongest first",
        y="expected number of false ones",
        title="How many false ones a longer list would have",
    )
    here = f"This result has {number:,}. " if number else ""
    words = (
        f"{here}Under the dashed line, a list has at most the share or number of false {unit} that "
        f"was asked for. The longest such list is selected."
    )
    return drawn + note(words)


# ---- words ---------------------------------------------------------------------------------------


def _promise() -> str:
    limits = "".join(f"<li>{text(limit)}</li>" for limit in LIMITS)
    return f"<p>{text(PROMISE)}</p><ul>{limits}</ul>"


def _state_text(state: Any) -> str:
    return "none: each run gives a slightly different result" if state is None else str(state)


def _how(discovery: FeatureDiscovery, how: Mapping[str, Any]) -> dict[str, object]:
    known = facts_of(discovery)
    asked = f"expected share of false features at most {discovery.fdr:g}"
    if discovery.expected_false is not None:
        asked = f"expected number of false features at most {discovery.expected_false:g}"
    forms = {
        "stream": "stream: each row is predicted before it is learned, in one reading",
        "crossfit": f"crossfit: {known['folds']} folds, each predicted by a model of the others",
        "joint": f"joint: crossfit with {known['folds']} folds; then one fit of the selected "
        f"features drops those within two standard errors of 0",
    }
    found: dict[str, object] = {**how}
    found |= {
        "asked for": asked,
        "form": forms[known["form"]],
        "task": known["task"],
        "calibration": f"{known['redraws']} redraws of the labels from the model",
        "random_state": _state_text(known["random_state"]),
    }
    if known["classes"]:
        shown = [str(label) for label in known["classes"][:10]]
        more = len(known["classes"]) - len(shown)
        found["classes"] = ", ".join(shown) + (f" and {more:,} more" if more else "")
    return found | {"made by": known["made_by"]}
