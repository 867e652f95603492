"""`thresher discover`: from files to the features that matter."""

from __future__ import annotations

import time

from thresher.cli.options.parsed import DiscoverOptions
from thresher.cli.options.values import bytes_of, classes_of, seconds_of
from thresher.cli.render.discovery_progress import DiscoveryProgress
from thresher.cli.render.discovery_result import DiscoveryResult
from thresher.cli.render.output import show
from thresher.cli.render.progress import warnings_shown
from thresher.cli.steps.check_outputs import check_outputs, quarantine_of
from thresher.cli.steps.make_cache import cached
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.discovery import FeatureDiscovery
from thresher.errors import InputError, LabelError, ParameterError
from thresher.training.checkpoint import check_replaceable, finish
from thresher.training.fitting import Specification
from thresher.training.observer import Interrupted

_OTHER_LABELS = "use --classes A,B,... for other classes, or --task regression for numbers"


def discover(options: DiscoverOptions) -> int:
    """Discover features as the options say; return the exit code."""
    began = time.perf_counter()
    discovery = _discovery(options)
    check_outputs(
        {**options.results, "--checkpoint": options.checkpoint},
        {"--cache": options.cache, "--on-bad-line": quarantine_of(options.reading)},
    )
    if options.checkpoint is not None:
        check_replaceable(options.checkpoint)
    observer = DiscoveryProgress(options.quiet)
    try:
        with warnings_shown(observer):
            source = _source(options, observer)
        for note in source.notes:
            observer.tell("note", message=note)
        discovery.set_params(refit=source.rereadable)  # for the weights
        with warnings_shown(observer):
            discovery.fit(
                source,
                classes=classes_of(options.classes),
                observer=observer,
                checkpoint=options.checkpoint,
                every=seconds_of(options.every or "60s"),
                resume=options.resume,
            )
    except Interrupted as stop:
        observer.close()
        show(
            f"interrupted after {stop.examples:,} rows; the checkpoint is {options.checkpoint}; "
            f"--resume continues from it",
            error=True,
        )
        return 130
    except LabelError as error:
        hint = error.hint if options.classes is not None else _OTHER_LABELS
        raise InputError(error.what, place=error.place, hint=hint) from None
    finally:
        observer.close()
    result = DiscoveryResult(discovery, source, options, time.perf_counter() - began)
    result.warn()
    result.write()
    if options.checkpoint is not None:
        keep = options.keep_checkpoint or result.lacks_model  # for --resume with a smaller --fdr
        written = (*options.results.values(), quarantine_of(options.reading))
        finish(options.checkpoint, observer, written, keep)
    result.report()
    return 1 if result.lacks_model else 0


def _discovery(options: DiscoverOptions) -> FeatureDiscovery:
    """Check the options that need no rows; return the estimator."""
    if options.fdr is not None and options.expected_false is not None:
        raise ParameterError("give --fdr or --expected-false, not both")
    if options.classes is not None and options.task == "regression":
        raise ParameterError("--classes cannot be used with --task regression")
    if options.form == "joint" and options.group_namespaces:
        raise ParameterError(
            "--form joint drops single features, and --group-namespaces selects whole namespaces: "
            "give one of them"
        )
    if options.every is not None and options.checkpoint is None:
        raise ParameterError("--every needs --checkpoint FILE")
    return FeatureDiscovery(
        fdr=0.1 if options.fdr is None else options.fdr,
        expected_false=options.expected_false,
        form=options.form,
        task=options.task,
        shuffle="auto" if options.shuffle is None else options.shuffle,
        feature_groups="namespace" if options.group_namespaces else None,
        folds=options.folds,
        redraws=options.redraws,
        n_jobs=options.reading.get("threads") or -1,
        memory_limit=bytes_of(options.memory),
        random_state=options.seed,
    )


def _source(options: DiscoverOptions, observer: DiscoveryProgress) -> Source:
    """Return the source of the data; only its first bytes have been read."""
    source = observer.watched(scan(list(options.data), **options.reading))
    source.refuse_outputs(
        *options.results.values(), options.checkpoint, options.cache,
        quarantine_of(options.reading),
    )  # fmt: skip
    for word in options.why:
        if not source.named and not word.isdigit():
            raise ParameterError(f"--why {word}: the features of {source} are numbers")
    if options.cache is not None:
        exact = Specification("coordinate-descent", "classifier", {}, "discover")  # float64
        return observer.watched(cached(source, options.cache, options.reading, observer, exact))
    if options.shuffle and not source.rereadable:
        raise ParameterError("--shuffle of standard input needs --cache FILE")
    if options.model is not None and not source.rereadable:
        raise ParameterError(
            "--model fits the selected features in another reading: standard input needs "
            "--cache FILE"
        )
    return source
