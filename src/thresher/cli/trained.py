"""What `thresher train` says at the end: in the model, and to the user."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from thresher.cli.show import as_json
from thresher.data.collisions import Collisions
from thresher.data.reading import Reading
from thresher.data.source import Source
from thresher.learned import least_valid_loss
from thresher.model import Model

if TYPE_CHECKING:
    from thresher.cli.train import Options


def described(options: Options, source: Source) -> dict[str, Any]:
    """Return how the rows were read, as predicting must read them too."""
    reading = asdict(Reading(**options.reading))
    for name in ("threads", "on_bad_line", "labelled"):
        reading.pop(name)
    for name in ("interactions", "text", "ignore"):
        reading[name] = json.dumps(reading[name]) if reading[name] else ""
    reading["kinds"] = json.dumps(source.kinds) if source.kinds else ""
    return reading | {"shuffle": "blocks" if options.shuffle else False, "first": source.first}


def report(
    options: Options, model: Model, source: Source, seconds: float, loss: float | None
) -> None:
    """Say what was learned."""
    last = model.history[-1] if model.history else None
    examples = 0 if last is None else last.examples
    facts = {
        "event": "done",
        "model": options.model,
        "examples": examples,
        "mean_loss": loss,
        "valid_loss": least_valid_loss(model.history),
        "nonzeros": model.nnz,
        "seconds": round(seconds, 3),
        "bad_lines": source.bad_lines.count,
        "distinct_features": source.distinct,
    }
    folded = None
    if source.distinct is not None and source.bits is not None:
        folded = Collisions(source.distinct, source.bits)
        facts |= {
            "load": folded.load,
            "expected_collisions": folded.shared,
            "suggested_bits": folded.suggested_bits,
        }
    if options.json:
        print(as_json(facts))
        return
    if source.bad_lines.warning:
        print(f"warning: {source.bad_lines.warning}", file=sys.stderr)
    if options.quiet:
        return
    if folded is not None:
        print(folded)
    elif source.distinct is not None:
        print(f"about {source.distinct:,} different features")
    mean = "" if loss is None else f", mean progressive loss {loss:.5f}"
    print(
        f"{examples:,} examples in {seconds:.2f} s{mean}, {model.nnz:,} nonzero weights -> "
        f"{options.model}"
    )
