"""The operations whose calls fail: commands and calls of the library, on real files."""

from __future__ import annotations

from dataclasses import replace

from faults import calls, inputs
from faults.operation import Operation

_TRAIN = ("train", "rows.svm", "-m", "model", "--rule", "ftrl", "--passes", "2")
_CLUSTER_RUN = (
    *("train", "part-*.svm", "-m", "model", "--rule", "ftrl", "--passes", "3", "--rounds", "3"),
    *("--workers", "0", "--checkpoint", "run", "--every", "1"),
)
_TUNE = ("tune", "rows.svm", "-m", "model", "--grid", "l1=0.1,1", "--folds", "2")
_DISCOVER = ("discover", "rows.svm", "-m", "model")
_COMPARE = (
    *("compare", "rows.svm", "-o", "out.json", "--html", "page.html", "--rules", "ftrl"),
    *("--orders", "1", "--folds", "2", "--checkpoint", "run.checkpoint"),
)
_CHECKPOINT = ("--checkpoint", "run.checkpoint", "--every", "0s")
_SAVED = ("run.checkpoint",)
_QUARANTINE = ("--on-bad-line", "quarantine=lines/bad")
_PAGE = ("--html", "page.html")

_TRAINING = {
    "train": Operation(_TRAIN, inputs.model),
    "train, 2 threads": Operation((*_TRAIN, "--threads", "2"), inputs.model),
    "train, names": Operation(
        ("train", "rows.vw", "-m", "model", "--rule", "one-pass"), inputs.words
    ),
    "train, table": Operation(("train", "rows.csv", "-m", "model", "--rule", "ftrl"), inputs.table),
    "train, cache": Operation(
        ("train", "rows.cache", "-m", "model", "--rule", "ftrl"), inputs.cache
    ),
    "train, new cache": Operation(
        (*_TRAIN, "--cache", "made.cache"),
        inputs.model,
        changes=("made.cache",),
        check=calls.check_cache,
    ),
    "train, quarantine": Operation(
        (*_TRAIN, *_QUARANTINE),
        inputs.bad_rows,
        changes=("lines/bad",),
        check=calls.check_quarantine,
    ),
    "train, shuffle": Operation(calls.shuffle, inputs.rows),
    "train, link": Operation(_TRAIN, inputs.linked_model),
    "train, checkpoint": Operation(
        (*_TRAIN, *_CHECKPOINT),
        inputs.model,
        ("--resume",),
        _SAVED,
        _SAVED,
        check=calls.check_checkpoint,
    ),
    "train, checkpoint, quarantine": Operation(
        (*_TRAIN, *_CHECKPOINT, *_QUARANTINE),
        inputs.bad_rows,
        ("--resume",),
        (*_SAVED, "lines/bad"),
        _SAVED,
        check=calls.check_checkpoint_and_quarantine,
    ),
    "train, race": Operation(
        ("train", "rows.svm", "-m", "model", "--rule", "auto", *_PAGE),
        inputs.texts("page.html"),
        unstable=("page.html",),
        together=("model", "page.html"),
        warns="not enough memory to try",
    ),
    "train, keep state": Operation((*_TRAIN, "--keep-state"), inputs.model),
    "train, from": Operation(
        ("train", "rows.svm", "-m", "model", "--from", "kept", "--keep-state"), inputs.kept
    ),
    "tune": Operation(_TUNE, inputs.model),
    "tune, page": Operation(
        (*_TUNE, *_PAGE),
        inputs.texts("page.html"),
        unstable=("page.html",),
        together=("model", "page.html"),
    ),
    "tune, checkpoint": Operation(
        (*_TUNE, *_CHECKPOINT),
        inputs.model,
        ("--resume",),
        _SAVED,
        _SAVED,
        check=calls.check_checkpoint,
    ),
    "checkpoint": Operation(
        calls.checkpoint, calls.stopped, (), _SAVED, _SAVED, check=calls.digest
    ),
    "resume": Operation(calls.resume, calls.stopped, (), _SAVED, _SAVED, check=calls.digest),
    "serve, learn": Operation(
        calls.learn, calls.learning, (), ("learned",), ("learned",), check=calls.check_learned
    ),
    "cluster": Operation(
        _CLUSTER_RUN, inputs.shards, ("--resume",), ("run",), ("run",), check=calls.check_cluster
    ),
    "discover": Operation(
        (*_DISCOVER, *_PAGE),
        inputs.texts("page.html"),
        unstable=("page.html",),
        together=("model", "page.html"),
    ),
    "discover, checkpoint": Operation(
        (*_DISCOVER, *_CHECKPOINT),
        inputs.model,
        ("--resume",),
        _SAVED,
        _SAVED,
        check=calls.check_checkpoint,
    ),
    "discover to json": Operation(
        ("discover", "rows.svm", "--json", "out.json"), inputs.texts("out.json")
    ),
    "discover to csv": Operation(
        ("discover", "rows.svm", "--csv", "out.csv"), inputs.texts("out.csv")
    ),
    "compare": Operation(
        _COMPARE,
        inputs.texts("out.json", "page.html"),
        changes=_SAVED,
        unstable=("out.json", "page.html", *_SAVED),
        together=("out.json", "page.html"),
        check=calls.check_comparison,
    ),
}

_MODELS = {
    "save": Operation(calls.save, inputs.model),
    "load": Operation(calls.load, inputs.model),
    "merge": Operation(("merge", "monday", "tuesday", "-m", "model"), inputs.parts),
    "predict": Operation(("predict", "model", "rows.svm", "-o", "out"), inputs.texts("out")),
    "predict, strict": Operation(("predict", "model", "rows.svm", "--strict"), inputs.model),
    "evaluate": Operation(
        ("evaluate", "model", "rows.svm", *_PAGE, "--bootstrap", "5"), inputs.texts("page.html")
    ),
    "inspect": Operation(
        ("inspect", "model", *_PAGE, "--data", "rows.svm"), inputs.texts("page.html")
    ),
    "inspect, changes": Operation(
        ("inspect", "monday", "--against", "tuesday", *_PAGE),
        inputs.texts("page.html", of=inputs.parts),
    ),
    **{
        f"export to {form}": Operation(
            ("export", "model", "-o", f"out.{form}", "--to", form), inputs.texts(f"out.{form}")
        )
        for form in ("json", "onnx", "sql", "csv", "vw")
    },
}

_FILES = {
    **{
        f"convert to {suffix}": Operation(
            ("convert", "rows.svm", f"made.{suffix}"), inputs.old(f"made.{suffix}")
        )
        for suffix in (
            *("cache", "vw", "parquet", "csv"),
            *("svm.gz", "svm.bz2", "svm.xz", "svm.zst"),
        )
    },
    "look": Operation(("look", "rows.svm", *_PAGE), inputs.texts("page.html")),
    "demo": Operation(
        ("demo", "--write", "made.vw", "--examples", "1000"), inputs.texts("made.vw")
    ),
    "manual": Operation(("man", "--write", "pages"), inputs.rows, changes=("pages",)),
}

_ALL = {**_TRAINING, **_MODELS, **_FILES}
_NAMED = ("train", "checkpoint", "save", "evaluate", "convert to csv")  # some file systems

OPERATIONS = {
    **_ALL,
    **{f"{name}, named files": replace(_ALL[name], named=True) for name in _NAMED},
}
