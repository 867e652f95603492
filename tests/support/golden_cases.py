"""The cells of `test_golden.py`: models of a rule, an input and a way to train.

Only public interfaces are used: estimators, `scan`, the command line, and model files.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import signal
import sys
from collections.abc import Callable, Iterator

import numpy as np

import thresher
from support.files import called
from support.golden_data import FILES, ROWS, Folder, arrays, lines_of
from thresher.rules import RULES

SEED = 7
WAYS = ("one", "three", "shuffled", "resumed")  # numbers of passes; the last two make three
MATRIX_RULES = ("stabilized", "coordinate-descent", "hard-threshold")
MORE = {"hard-threshold": {"n_nonzero": 12}}  # without it the rule keeps all features
# Parameters other than the defaults: further options of the rules, and sparser weights.
VARIANTS = {
    "truncated-gradient": {
        "sparse": {"gravity": 0.05},
        "target": {"target_nnz": 20},
        "average": {"average": True, "l2": 0.01},
        "double": {"dtype": "float64", "schedule": "sqrt"},
    },
    "averaged-sgd": {"center": {"center": True}, "last": {"average": False, "alpha": 0.01}},
    "forward-backward": {"sparse": {"l1": 0.05}},
    "ftrl": {"sparse": {"l1": 6.0}, "target": {"target_nnz": 20}},
    "one-pass": {
        "four": {"lanes": 4, "dtype": "float64"},
        "target": {"target_nnz": 20},
        "sparse": {"cut": 0.1},
    },
    "stabilized": {"paper": {"variant": "paper", "paths": 4}, "target": {"target_nnz": 10}},
    "dual-averaging": {"sparse": {"l1": 0.01}, "boost": {"boost": 0.1}},
    "margin-perceptron": {
        "sparse": {"l1": 0.05, "shrink": "all"},
        "limit": {"max_density": 0.5},
    },
    "mirror-descent": {"sparse": {"l1": 0.01}},
    "coordinate-descent": {"sparse": {"l1": 0.01}},
}


def hash_of(model: thresher.Model) -> str:
    """Return the SHA-256 of the weights and the history, without names, parameters and times."""
    digest = hashlib.sha256()
    for array, kind in (
        *((model.indptr, "<i8"), (model.indices, "<u8")),
        *((model.weights, "<f8"), (model.intercept, "<f8")),
    ):
        digest.update(np.ascontiguousarray(array, kind).tobytes())
    classes = None if model.classes is None else model.classes.tolist()
    history = [
        (
            int(record.examples),
            float(record.loss),
            None if record.nonzeros is None else int(record.nonzeros),
            float(record.rate),
            None if record.valid_loss is None else float(record.valid_loss),
        )
        for record in model.history
    ]
    digest.update(repr((classes, int(model.n_features), model.loss, history)).encode())
    return digest.hexdigest()


# ---- ways to train -------------------------------------------------------------------------------


def estimator(rule: str, task: str = "classifier", **params):
    """Return the estimator of a rule; parameters that it does not have are ignored."""
    names = RULES[rule].estimators
    made = getattr(thresher, names.get(task, names.get("regressor", "")))
    known = made().get_params()
    return made(**{k: v for k, v in {**MORE.get(rule, {}), **params}.items() if k in known})


def params_of(way: str, shuffle: str = "each") -> dict:
    """Return the parameters of an estimator."""
    shuffled = way in ("shuffled", "resumed")
    return {
        "passes": 1 if way == "one" else 3,
        "shuffle": shuffle if shuffled else False,
        "random_state": SEED if shuffled else 0,
        "tol": None,
    }


def options_of(rule: str, way: str) -> list[str]:
    """Return the options of the command line."""
    options = ["--rule", rule, "--passes", "1" if way == "one" else "3"]
    for name, value in MORE.get(rule, {}).items():
        options += [f"--{name.replace('_', '-')}", str(value)]
    if way in ("shuffled", "resumed"):
        options += ["--shuffle-blocks", "--seed", str(SEED)]
    return options


class Interrupting(io.BytesIO):
    """An output stream that sends SIGINT (Ctrl-C) after some checkpoints."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def write(self, text) -> int:
        self.left -= bytes(text).count(b'"checkpoint"')
        if self.left <= 0:
            self.left = sys.maxsize
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


def trained(folder: Folder, *arguments: str, stdin: bytes = b"", cut: int = 0) -> thresher.Model:
    """Run `thresher train`; with cut, interrupt it after that checkpoint and resume it."""
    model = folder.fresh(".thresher")
    arguments = ("train", *arguments, "-m", str(model))
    if cut:
        began = (*arguments, "--every", "0s", "--json")
        called(*began, stdin=stdin, code=130, stdout=Interrupting(cut))
        done = called(*arguments, "--resume", "--json", stdin=stdin)
        assert json.loads(done.stdout.splitlines()[0])["event"] == "resumed"
    else:
        called(*arguments, "--quiet", stdin=stdin)
    return thresher.load(model)


def in_chunks(rule: str, way: str) -> thresher.Model:
    """Learn the rows in three calls of `partial_fit`; if "resumed", with a pickle between them."""
    X, y, _ = arrays("two")
    clf = estimator(rule, random_state=SEED)
    size = ROWS // FILES
    for begin in range(0, ROWS, size):
        clf.partial_fit(X[begin : begin + size], y[begin : begin + size], classes=[-1, 1])
        if way == "resumed":
            clf = pickle.loads(pickle.dumps(clf))
    return clf.model_


# ---- cells ---------------------------------------------------------------------------------------

Cells = Iterator[tuple[str, Callable[[], thresher.Model]]]


def cells_of(rule: str, folder: Folder) -> Cells:
    """Yield the cells of a rule: a name, and a function that returns the model."""
    for way in WAYS:
        yield from _two_classes(rule, way, folder)
    if rule in ("truncated-gradient", "ftrl", "one-pass"):
        yield from _others(rule, folder)
    for name, params in VARIANTS.get(rule, {}).items():
        yield from _variant(rule, name, params, folder)
    yield from _regression(rule, folder)


def _two_classes(rule: str, way: str, folder: Folder) -> Cells:
    """Yield the cells of two classes from all inputs.

    Resumed runs are tested here only for the command line and `partial_fit`, and not for rules of
    matrices. A pipe is read by `partial_fit`: it allows only one pass, and `fit` would have to read
    it first to find its classes.
    """
    params, options = params_of(way), options_of(rule, way)
    blocks = params_of(way, "blocks")
    streaming = rule not in MATRIX_RULES
    # Named features need a hashed store, or bits if the rule needs a width.
    named = {"store": "hashed"} if rule != "mirror-descent" else {}
    bits = {"bits": 10} if rule == "mirror-descent" else {}
    inputs = {
        "svmlight": (lambda: folder.text("two", "svmlight"), {}, {}),
        "vw": (lambda: folder.text("two", "vw"), named, bits),
        "cache": (lambda: folder.cache("two"), {}, {}),
    }
    if way != "resumed":
        X, y, _ = arrays("two")
        yield f"csr/fit/{way}", lambda: estimator(rule, **params).fit(X, y).model_
    for name, (files, store, reading) in inputs.items():
        given = [text for item in reading.items() for text in (f"--{item[0]}", str(item[1]))]
        if way != "resumed":
            yield (
                f"{name}/fit/{way}",
                lambda files=files, store=store, reading=reading: (
                    estimator(rule, **blocks, **store).fit(thresher.scan(files(), **reading)).model_
                ),
            )
        if way != "resumed" or streaming:
            cut = 5 if way == "resumed" else 0  # in the second pass of three
            yield (
                f"{name}/train/{way}",
                lambda files=files, given=given, cut=cut: trained(
                    folder, *files(), *options, *given, cut=cut
                ),
            )
    yield from _pipes(rule, way, folder)
    if way in ("one", "resumed") and hasattr(estimator(rule), "partial_fit"):
        yield f"csr/partial_fit/{way}", lambda: in_chunks(rule, way)


def _pipes(rule: str, way: str, folder: Folder) -> Cells:
    """Yield the cells of rows that can be read only once."""
    text = ("\n".join(lines_of("two", "svmlight")) + "\n").encode()
    options = options_of(rule, "one" if way == "resumed" else way)
    if rule == "mirror-descent" and way in ("one", "resumed"):
        options += ["--bits", "6"]

    def arriving() -> thresher.Model:
        X, y, _ = arrays("two")
        size = ROWS // FILES
        parts = ((X[i : i + size], y[i : i + size]) for i in range(0, ROWS, size))
        bits = {"bits": 6} if rule == "mirror-descent" else {}
        clf = estimator(rule, random_state=SEED)
        return clf.partial_fit(thresher.scan(parts, **bits), classes=[-1, 1]).model_

    def piped() -> thresher.Model:
        # A small pipe is a single block, so the run is interrupted after it, before the pass ends.
        cut = 1 if way == "resumed" else 0
        cache = ["--cache", str(folder.fresh(".cache"))] if way in ("three", "shuffled") else []
        return trained(folder, "-", *options, *cache, stdin=text, cut=cut)

    if way == "one" and rule not in MATRIX_RULES:
        yield "pipe/partial_fit/one", arriving
    if way != "resumed" or rule not in MATRIX_RULES:
        yield f"pipe/train/{way}", piped


def _others(rule: str, folder: Folder) -> Cells:
    """Yield cells with four classes, lists of labels, weights, and validation rows."""
    for labels, option in (("four", "--multiclass"), ("lists", "--multilabel")):
        X, y, _ = arrays(labels)
        reading = {"multilabel": True} if labels == "lists" else {}
        for way in ("three", "shuffled", "resumed"):
            params, options = params_of(way), [*options_of(rule, way), option]
            blocks = params_of(way, "blocks")
            files = folder.text(labels, "svmlight")
            if way != "resumed":
                yield (
                    f"{labels}/csr/fit/{way}",
                    lambda p=params, X=X, y=y: estimator(rule, **p).fit(X, y).model_,
                )
                yield (
                    f"{labels}/svmlight/fit/{way}",
                    lambda p=blocks, files=files, reading=reading: (
                        estimator(rule, **p).fit(thresher.scan(files, **reading)).model_
                    ),
                )
            cut = 5 if way == "resumed" else 0
            yield (
                f"{labels}/svmlight/train/{way}",
                lambda o=options, files=files, cut=cut: trained(folder, *files, *o, cut=cut),
            )
    params, options = params_of("three"), options_of(rule, "three")
    X, y, weights = arrays("weighted")
    files = folder.text("weighted", "vw")
    yield (
        "weighted/csr/fit/three",
        lambda: estimator(rule, **params).fit(X, y, sample_weight=weights).model_,
    )
    yield (
        "weighted/vw/fit/three",
        lambda: estimator(rule, **params, store="hashed").fit(thresher.scan(files)).model_,
    )
    yield "weighted/vw/train/three", lambda: trained(folder, *files, *options)
    yield from _validated(rule, folder)
    if rule not in MATRIX_RULES:
        yield from _true_shuffle(rule, folder)


def _true_shuffle(rule: str, folder: Folder) -> Cells:
    """Yield cells of sources whose rows are shuffled as a whole."""
    files, params = folder.text("two", "svmlight"), params_of("shuffled")
    options = [word.replace("-blocks", "") for word in options_of(rule, "shuffled")]
    yield (
        "true/svmlight/fit/shuffled",
        lambda: estimator(rule, **params).fit(thresher.scan(files)).model_,
    )
    yield "true/svmlight/train/shuffled", lambda: trained(folder, *files, *options)
    yield "true/svmlight/train/resumed", lambda: trained(folder, *files, *options, cut=3)


def _validated(rule: str, folder: Folder) -> Cells:
    """Yield cells with early stopping by the loss on validation rows."""
    params, options = params_of("three") | {"tol": 0.0}, options_of(rule, "three")
    X, y, _ = arrays("two")
    Z, z, _ = arrays("two", seed=1)
    files, others = folder.text("two", "svmlight"), folder.text("two", "svmlight", 1, files=1)
    yield "valid/csr/fit/three", lambda: estimator(rule, **params).fit(X, y, eval_set=(Z, z)).model_
    yield (
        "valid/svmlight/fit/three",
        lambda: (
            estimator(rule, **params)
            .fit(thresher.scan(files), eval_set=thresher.scan(others))
            .model_
        ),
    )
    yield (
        "valid/svmlight/train/three",
        lambda: trained(folder, *files, *options, "--valid", others[0]),
    )


def _variant(rule: str, name: str, more: dict, folder: Folder) -> Cells:
    """Yield the cells with parameters other than the defaults."""
    X, y, _ = arrays("two")
    files = folder.text("two", "svmlight")
    params, options = params_of("three") | more, options_of(rule, "three")
    for key, value in more.items():
        option = f"--{key.replace('_', '-')}"
        no = f"--no-{key}"
        options += [option if value else no] if isinstance(value, bool) else [option, str(value)]
    yield f"{name}/csr/fit/three", lambda: estimator(rule, **params).fit(X, y).model_
    yield (
        f"{name}/svmlight/fit/three",
        lambda: estimator(rule, **params).fit(thresher.scan(files)).model_,
    )
    yield f"{name}/svmlight/train/three", lambda: trained(folder, *files, *options)


def _regression(rule: str, folder: Folder) -> Cells:
    """Yield the cells of regression, if the rule has a regressor."""
    if rule in ("stabilized", "margin-perceptron"):
        return  # they have only classifiers
    loss = RULES[rule].regressor_loss
    X, y, _ = arrays("numbers")
    fixing = {name: p for name, p in RULES[rule].own.items() if p.fixes_units}
    for name, first in list(fixing.items())[:1]:
        number = {name: first.auto or 1e-3}  # targets are then not standardised
        yield (
            "numbers/csr/fit/given",
            lambda n=number: (
                estimator(rule, "regressor", **params_of("three"), **n).fit(X, y).model_
            ),
        )
    for way in ("three", "shuffled"):
        params, options = params_of(way), options_of(rule, way)
        blocks = params_of(way, "blocks")
        options += ["--loss", loss] if "loss" in RULES[rule].parameters else []
        files = folder.text("numbers", "svmlight")
        yield (
            f"numbers/csr/fit/{way}",
            lambda p=params: estimator(rule, "regressor", **p).fit(X, y).model_,
        )
        yield (
            f"numbers/svmlight/fit/{way}",
            lambda p=blocks, files=files: (
                estimator(rule, "regressor", **p).fit(thresher.scan(files)).model_
            ),
        )
        yield (
            f"numbers/svmlight/train/{way}",
            lambda o=options, files=files: trained(folder, *files, *o),
        )
