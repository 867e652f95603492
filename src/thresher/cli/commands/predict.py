"""`thresher predict`: write one prediction per line for the rows of files."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from thresher.atomic import written_whole
from thresher.cli.render.explained_rows import ExplainedRows
from thresher.cli.render.output import is_shown, naming_output, output_bytes, show
from thresher.cli.render.warning_sink import say, sink
from thresher.cli.steps.check_outputs import check_outputs, quarantine_of
from thresher.cli.steps.final_warnings import warn_of_bad_lines
from thresher.data.paths import STANDARD_INPUT
from thresher.data.read_options import ReadOptions
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.errors import ParameterError, setting
from thresher.losses import LOSSES, PROBABILITY_LOSSES
from thresher.model.links import label_probabilities, labels, probabilities, scores, values
from thresher.model.model import Model, load
from thresher.printable import one_line, one_lines, printable

KINDS = ("label", "probability", "raw")


def predict(
    model_file: str,
    data: Sequence[str],
    output: str | None,
    kind: str,
    reading: dict[str, Any],
    quiet: bool,
    line_buffered: bool = False,
    explain: int | None = None,
    as_json: bool = False,
) -> int:
    """Write predictions as the options say; return the exit code.

    Line breaks in labels and tags are escaped; on a terminal, all control characters are.
    """
    if as_json and explain is None:
        raise ParameterError((setting("json"), " needs ", setting("explain")))
    model = load(model_file)
    render = renderer(model, kind)
    as_they_come = line_buffered or (list(data) == [STANDARD_INPUT] and _is_typed())
    explained = None if explain is None else ExplainedRows(model, explain, as_json)
    source = _source(model, data, reading, as_they_come)
    quarantine = quarantine_of(reading)
    source.refuse_outputs(output, quarantine)
    check_outputs({}, {"MODEL": model_file, "--output": output, "--on-bad-line": quarantine})
    rows, known = 0, model.nnz == 0
    seen = output in (None, "-") and is_shown()
    with _opened(output, held=sink().strict) as out:
        for block, raw in model.raw_blocks(source):
            known = known or bool((raw != model.intercept).any())
            lines, tags = render(raw), block.tags
            if tags is not None:
                lines = [
                    f"{line} {tag}" if tag else line
                    for line, tag in zip(lines, one_lines(tags), strict=True)
                ]
            if explained is not None:
                lines = explained.lines(block, raw, lines)
            if seen:
                keep = "" if explained is None else "\t"
                lines = [printable(line, keep) for line in lines]
            out.write(("\n".join(lines) + "\n" * bool(lines)).encode())
            rows += block.rows
            if as_they_come:
                out.flush()
        warn_of_bad_lines(source)
        if rows and not known:
            say(
                "no row has a feature with nonzero weight; was the model trained on other data, "
                "or in another format?"
            )
    for note in source.notes:
        if not quiet:
            show(note, error=True)
    if output is not None and not quiet:
        show(f"{rows:,} predictions -> {output}", error=True)
    return 0


def _is_typed() -> bool:
    """Tell whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def _source(
    model: Model, data: Sequence[str], reading: dict[str, Any], as_they_come: bool
) -> Source:
    options = reading_of(model, reading)
    if not as_they_come:
        return scan(list(data), **options)
    if list(data) != [STANDARD_INPUT]:
        raise ParameterError(
            "only standard input is answered line by line",
            parameter="line_buffered",
            hint="DATA: -",
        )
    from thresher.data.text_rows import LinesAsTheyCome

    return LinesAsTheyCome(sys.stdin.fileno(), ReadOptions.of(**options))


def reading_of(model: Model, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return how to read rows for a model: as in training, unless the options differ."""
    learned = {
        name: model.parameters[name]
        for name in (
            *("bits", "zero_based", "multilabel", "label", "weight", "ngrams", "missing", "dates"),
            *("header", "delimiter", "encoding", "quotes", "label_separator"),
        )
        if name in model.parameters
    }
    for name in ("interactions", "text", "ignore", "columns"):
        learned[name] = tuple(json.loads(str(model.parameters.get(name) or "[]")))
    given = {
        name: value
        for name, value in chosen.items()
        if value not in (None, (), []) and (value is not False or name in ("header", "quotes"))
    }
    reading = learned | given
    if learned.get("label") not in (None, reading.get("label")):
        reading["ignore"] = (
            *reading["ignore"],
            learned["label"],
        )  # still not a feature
    return reading | {"labelled": False}


def renderer(model: Model, kind: str) -> Callable[[NDArray[np.float64]], list[str]]:
    """Return a function that turns raw predictions into lines."""
    if kind not in KINDS:
        raise ParameterError(f"--as must be one of {', '.join(KINDS)}; got {kind!r}")
    classes = model.classes
    if kind == "probability" and (classes is None or model.loss not in PROBABILITY_LOSSES):
        raise ParameterError(
            f"--as probability needs a classifier with one of the losses "
            f"{', '.join(PROBABILITY_LOSSES)}; the loss of this model is {model.loss}"
        )

    shown = [] if classes is None else [one_line(str(label)) for label in classes.tolist()]

    def decision(raw: NDArray[np.float64]) -> NDArray[np.float64]:
        return scores(raw, model.loss, classes is not None)

    def render(raw: NDArray[np.float64]) -> list[str]:
        found = decision(raw)
        if kind == "raw":
            return _numbers(found)
        if classes is None:
            return _numbers(values(found, model.loss))
        if model.multilabel:
            return _label_sets(raw, shown, model, kind)
        if kind == "probability":
            shares = probabilities(found, model.loss)
            return _numbers(shares[:, 1] if len(classes) == 2 else shares)
        return list(labels(found, np.array(shown, object)))

    return render


def _numbers(found: NDArray[np.float64]) -> list[str]:
    if found.ndim == 1:
        return [f"{number:.9g}" for number in found.tolist()]
    return [" ".join(f"{number:.9g}" for number in row) for row in found.tolist()]


def _label_sets(raw: NDArray[np.float64], names: list[str], model: Model, kind: str) -> list[str]:
    """Return the predicted labels of multilabel rows; the label with the highest score is first."""
    lines = []
    decision_at = LOSSES[model.loss].decision_at
    separator = one_line(str(model.parameters.get("label_separator") or ","))
    shown = [_quoted(label, separator) for label in names]
    for row in raw:
        chosen = np.flatnonzero(row >= decision_at)
        chosen = chosen[np.argsort(-row[chosen], kind="stable")]
        if kind == "probability":
            shares = label_probabilities(row - decision_at, model.loss)
            words = [f"{shown[k]}:{shares[k]:.4g}" for k in chosen]
        else:
            words = [shown[k] for k in chosen]
        lines.append(separator.join(words))
    return lines


def _quoted(label: str, separator: str) -> str:
    """Return a label; in double quotes, as in CSV, if it contains the separator."""
    if separator not in label and '"' not in label:
        return label
    return '"' + label.replace('"', '""') + '"'


@contextlib.contextmanager
def _opened(output: str | None, held: bool) -> Iterator[IO[bytes]]:
    """Open a file or standard output.

    If `held`, standard output gets nothing before the end, and nothing after an error.
    """
    if output not in (None, "-"):
        with written_whole(output) as file:
            yield file
        return
    out = output_bytes()
    if held:
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with naming_output():
                shutil.copyfileobj(file, out)
                out.flush()
    else:
        with naming_output():
            yield out
            out.flush()
