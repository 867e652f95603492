"""`thresher evaluate`: metrics of a model on files, or of two models and their difference."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thresher.cli.commands.predict import reading_of
from thresher.cli.render.output import check_output, show, show_lines, show_record
from thresher.cli.render.reading_progress import ReadingProgress
from thresher.cli.steps.check_outputs import check_outputs, quarantine_of
from thresher.cli.steps.final_warnings import warn_of_bad_lines
from thresher.data.paths import STANDARD_INPUT
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.evaluation import Evaluation, ModelComparison
from thresher.evaluation import evaluate as evaluate_model
from thresher.file_format import RepeatedEntryError
from thresher.model.model import Model, load
from thresher.model.tensor_file import TensorFile

_SUFFIX = ".thresher"


@dataclass(frozen=True)
class EvaluateOptions:
    """The options of `thresher evaluate`, except those for reading."""

    against: str | None
    replicates: int
    level: float
    seed: int
    shares: str
    at: str
    quantile: float | None
    exact: int | None
    json: bool
    html: str | None
    quiet: bool


def evaluate(
    model: str, data: Sequence[str], options: EvaluateOptions, reading: dict[str, Any]
) -> int:
    """Evaluate as the options say; return the exit code."""
    files, data = _models(model, data, options.against)
    if not data:
        raise ParameterError("DATA is missing: give files with labels after the models")
    known: dict[str, Any] = {
        "replicates": options.replicates,
        "level": options.level,
        "seed": options.seed,
        "quantile": options.quantile,
        "shares": _numbers("shares", options.shares, float),
        "at": _numbers("at", options.at, int),
    }
    if options.exact is not None:
        known["exact"] = options.exact
    quarantine = {"--on-bad-line": quarantine_of(reading)}
    check_outputs({"--html": options.html}, {**_inputs(files), **quarantine})
    if options.json or options.html is None:
        check_output()
    models = [load(file) for file in files]
    sources = _sources(models, data, reading)
    for source in sources:
        source.refuse_outputs(options.html)
    if len(models) > 1:
        known |= {"against": models[1], "against_X": sources[-1]}
    progress = ReadingProgress(data, options.quiet)
    try:
        found = evaluate_model(models[0], sources[0], on_progress=progress, **known)
    finally:
        progress.close()
    warn_of_bad_lines(sources[0])
    _name(found, files, data)
    if options.html is not None:
        found.report(options.html)
    _show(found, options, sources[0])
    return 0


def _models(model: str, data: Sequence[str], against: str | None) -> tuple[list[str], list[str]]:
    """Return the files of the models, and the others."""
    data = list(data)
    files = [model] if against is None else [model, against]
    while data and _is_model(data[0]):
        files.append(data.pop(0))
    if len(files) > 2:
        raise ParameterError(
            f"at most two models can be compared; got {len(files)}: {', '.join(files)}"
        )
    return files, data


def _is_model(path: str) -> bool:
    """Tell whether a file is a model: by its name, or by its first bytes."""
    if path.endswith(_SUFFIX):
        return True
    if path == STANDARD_INPUT or not os.path.isfile(path):
        return False
    try:
        with TensorFile(path) as file:
            return "thresher" in file.metadata
    except RepeatedEntryError:
        return True  # `load` says what is wrong
    except (OSError, ValueError):
        return False


def _numbers(option: str, given: str, kind: type) -> list[Any]:
    """Return the numbers of an option."""
    try:
        return [kind(word) for word in given.split(",")]
    except ValueError:
        raise ParameterError(
            parameter=option, value=given, allowed="numbers with commas between them"
        ) from None


def _inputs(files: Sequence[str]) -> dict[str, str | None]:
    """Return the files of the models by their names in messages."""
    return dict(zip(("MODEL", "the other MODEL"), dict.fromkeys(files), strict=False))


def _sources(models: Sequence[Model], data: Sequence[str], chosen: dict[str, Any]) -> list[Source]:
    """Return the rows as each model reads them: one source, if all read them in the same way."""
    readings = [_reading(model, chosen) for model in models]
    kinds = [model.parameters.get("kinds") for model in models]
    if all(one == readings[0] for one in readings) and all(one == kinds[0] for one in kinds):
        return [scan(list(data), **readings[0])]
    if STANDARD_INPUT in data:
        raise ParameterError(
            "the models read rows in different ways, so the data are read twice: standard input "
            "cannot be; write it to a file"
        )
    return [scan(list(data), **reading) for reading in readings]


def _reading(model: Model, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return how to read rows with labels for a model."""
    reading = reading_of(model, chosen) | {"labelled": True}
    learned = model.parameters.get("label")
    used = {chosen.get("label"), chosen.get("weight")} - set(chosen.get("ignore") or ())
    if learned != reading.get("label"):
        used.add(learned)  # it may be missing; the model has no weight of it
    reading["ignore"] = tuple(name for name in reading["ignore"] if name not in used)
    return reading


def _name(found: Evaluation | ModelComparison, files: Sequence[str], data: Sequence[str]) -> None:
    """Add the names of the models and of the data."""
    parts = [found] if isinstance(found, Evaluation) else [found.first, found.second]
    named = [os.path.basename(file) for file in files]
    if len(named) > 1 and named[0] == named[1]:
        named = list(files)
    for part, name in zip(parts, named, strict=True):
        part.about.update(model=name, data=", ".join(map(os.path.basename, data)))


def _show(found: Evaluation | ModelComparison, options: EvaluateOptions, source: Source) -> None:
    if options.json:
        show_record(found.to_json())
    elif not options.quiet:
        show_lines(found.table())
    if not options.quiet:
        for note in source.notes:
            show(note, error=True)
        if options.html is not None:
            show(f"page -> {options.html}", error=True)
