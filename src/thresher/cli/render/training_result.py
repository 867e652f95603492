"""The result of `thresher train`."""

from __future__ import annotations

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.render.output import show, show_lines, show_record
from thresher.cli.render.texts import as_json
from thresher.cli.steps.final_warnings import collisions_of
from thresher.data.source import Source
from thresher.model.evidence import no_signal_text
from thresher.model.history import least_valid_loss
from thresher.model.model import Model

_CERTIFICATES = 3  # certificates that are printed; all are in the report and in the model


def report(
    options: TrainOptions, model: Model, source: Source, seconds: float, loss: float | None
) -> None:
    """Print what was learned."""
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
    silent = no_signal_text(model)
    if silent is not None:
        facts["no_signal"] = silent
    folded = collisions_of(source)
    if folded is not None:
        facts |= {
            "load": folded.load,
            "expected_collisions": folded.shared,
            "suggested_bits": folded.suggested_bits,
        }
    if model.certificates:
        facts["certificates"] = [str(certificate) for certificate in model.certificates]
    if options.json:
        show_record(as_json(facts))
        return
    if options.quiet:
        return
    if folded is not None:
        if folded.suggested_bits <= folded.bits:  # else there was a warning
            show(folded)
    elif source.distinct is not None:
        show(f"about {source.distinct:,} different features")
    if silent is not None:
        show(silent)
    for certificate in model.certificates[:_CERTIFICATES]:
        show_lines(certificate)
    mean = "" if loss is None else f", mean progressive loss {loss:.5f}"
    show(
        f"{examples:,} examples in {seconds:.2f} s{mean}, {model.nnz:,} nonzero weights -> "
        f"{options.model}"
    )
