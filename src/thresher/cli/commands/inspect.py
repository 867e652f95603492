"""`thresher inspect`: show what a model has learned."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from typing import Any

from thresher.cli.render.output import check_output, show, show_lines
from thresher.cli.steps.check_outputs import check_outputs
from thresher.errors import DataError, ParameterError
from thresher.model.file import StateInFile
from thresher.model.history import least_valid_loss
from thresher.model.model import Model, load
from thresher.printable import printable


def inspect(
    file: str,
    top: int,
    why: list[str],
    label: str | None,
    as_json: bool,
    html: str | None = None,
    data: Sequence[str] = (),
    against: str | None = None,
) -> int:
    """Print a summary, the largest weights, or why a feature has its weight; write the page."""
    if as_json or html is None:
        check_output()
    model = load(file)
    if against is not None:
        if why or label is not None or data:
            raise ParameterError("--against cannot be used with --why, --class or --data")
        return _changes(model, file, against, as_json, html)
    if data and html is None:
        raise ParameterError(
            "--data needs --html: the page shows how well the model predicts these rows"
        )
    text = _text(model, top, why, label, as_json)
    if html is not None:
        _write_page(model, file, html, data)
    show_lines(text)
    if html is not None and not as_json:
        show()
        show(f"page -> {html}")
    return 0


def _write_page(model: Model, file: str, html: str, data: Sequence[str]) -> None:
    from thresher.cli.commands.predict import reading_of
    from thresher.data.scan import scan
    from thresher.report.model_page import write

    check_outputs({"--html": html}, {"MODEL": file})
    source = None
    if data:
        source = scan(list(data), **{**reading_of(model, {}), "labelled": True})
        source.refuse_outputs(html)
    write(model, html, source, title=os.path.basename(file), file=file)


def _changes(model: Model, file: str, against: str, as_json: bool, html: str | None) -> int:
    """Print what changed since another model; write the page."""
    check_outputs({"--html": html}, {"MODEL": file, "--against": against})
    changes = model.compare_to(load(against))
    if html is not None:
        changes.report(html, [os.path.basename(against), os.path.basename(file)])
    if as_json:
        show_lines(json.dumps(changes.numbered().to_dict(), default=str))
    else:
        show_lines(repr(changes.numbered()))
        if html is not None:
            show()
            show(f"page -> {html}")
    return 0


def _text(model: Model, top: int, why: list[str], label: str | None, as_json: bool) -> str:
    chosen = _label(model, label)
    if why:
        reasons = [_numbered(model.why(_feature(model, word), chosen), model) for word in why]
        if as_json:
            return json.dumps([_plain(reason._asdict()) for reason in reasons], default=str)
        return "\n\n".join(_why(reason) for reason in reasons)
    features = [_numbered(feature, model) for feature in model.top(top, chosen)]
    facts = summary(model)
    if not as_json:
        size = facts["learner's state"]
        facts["learner's state"] = "none" if size is None else f"{size:,} bytes"
    else:
        facts["top"] = [_plain(feature._asdict()) for feature in features]
        return json.dumps(facts, default=str)
    width = max(map(len, facts))
    lines = [f"{name:<{width}}  {_shown(value)}" for name, value in facts.items()]
    return "\n".join([*lines, *(["", _table(features)] if features else [])])


def summary(model: Model) -> dict[str, Any]:
    """Return the main facts about a model."""
    parameters = dict(model.parameters)
    last = model.history[-1] if model.history else None
    facts: dict[str, Any] = {"rule": parameters.pop("rule", "unknown"), "loss": model.loss}
    if model.classes is not None:
        count, shown = len(model.classes), [str(label) for label in model.classes[:8].tolist()]
        facts["classes"] = f"{count}: {', '.join(shown)}{', ...' if count > 8 else ''}"
    facts["features"] = "any (64-bit hashes)" if model.n_features == 2**64 else model.n_features
    facts["nonzero weights"] = model.nnz
    outputs = len(model.intercept)
    facts["intercept"] = float(model.intercept[0]) if outputs == 1 else f"{outputs} values"
    if last is not None:
        facts["examples"] = last.examples
        facts["last loss"] = last.loss
        if (valid := least_valid_loss(model.history)) is not None:
            facts["validation loss"] = valid
    kept = model.learner
    facts["learner's state"] = kept.bytes if isinstance(kept, StateInFile) else None
    facts["parameters"] = ", ".join(
        f"{name}={value}"
        for name, value in sorted(parameters.items())
        if value not in (None, "", False) and name not in ("loss", "first", "kinds")
    )
    return facts


def _table(features: list[Any]) -> str:
    labelled = any(feature.label is not None for feature in features)
    names = [printable(feature.name) for feature in features]
    width = max(7, *map(len, names))
    lines = [f"{'feature':<{width}}  {'weight':>12}" + ("  class" if labelled else "")]
    for feature, name in zip(features, names, strict=True):
        line = f"{name:<{width}}  {feature.weight:>+12.6g}"
        lines.append(line + (f"  {printable(feature.label)}" if labelled else ""))
    return "\n".join(lines)


def _why(reason: Any) -> str:
    facts = {k: v for k, v in reason._asdict().items() if v is not None}
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {_shown(value)}" for name, value in facts.items())


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else printable(value)


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in facts.items()
    }


def _label(model: Model, label: str | None) -> Any:
    """Return the class whose text is given."""
    if label is None or model.classes is None:
        return label
    return next((known for known in model.classes.tolist() if str(known) == label), label)


def _numbered(found: Any, model: Model) -> Any:
    """Return a feature with its number in the files, which may count from 1."""
    (field, name), first = next(iter(found._asdict().items())), model.parameters.get("first")
    return found._replace(**{field: name + first}) if first and isinstance(name, int) else found


def _feature(model: Model, word: str) -> str | int:
    """Return a feature given as text: a name, with "=" or "^" before the value, else a number."""
    names = set((model.names or {}).values())
    for name in (word, word.replace("^", "=", 1), word.replace("=", "^", 1)):
        if name in names:
            return name
    if not word.isdecimal():
        raise DataError(
            f"no feature with nonzero weight has the name {word!r}; --top N lists the features "
            f"with the largest weights"
        )
    return int(word) - int(model.parameters.get("first") or 0)
