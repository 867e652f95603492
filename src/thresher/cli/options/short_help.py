"""What `--help` of each command shows: the options people use, by topic, one line each.

An option that is not listed here is in `--help-all` only. To show a new option in `--help`, add a
line: its name, and at most `LONGEST` characters. "DATA..." and other arguments are listed too.
"""

from __future__ import annotations

LONGEST = 53  # characters of a line: they fit beside the names in 80 columns

_READ = {
    "DATA...": "files, globs, or - for standard input",
    "--format": "svmlight, vw, csv, parquet, ...; default: detected",
    "--label": "column of a table with the labels",
    "--weight": "column of a table with the weights of the rows",
    "--text": "column of a table with text: words are features",
    "--ngrams": "features of up to this many consecutive words",
    "--ignore": "column of a table to leave out",
    "--bits": "hash features to this many bits",
    "--interactions": "products of the features of two VW namespaces",
    "--zero-based": "feature numbers in svmlight files start at 0",
    "--threads": "number of threads; results do not depend on it",
    "--on-bad-line": "error, skip or quarantine=FILE",
}
_SHOW = {
    "--names": "save the names of features in the model",
    "--json": "print one JSON object per event",
    "--quiet": "show only warnings",
    "--strict": "make every warning an error; write nothing then",
}
_LONG_RUNS = {
    "--cache": "parse the data once into this file",
    "--checkpoint": "write checkpoints to this file",
    "--every": "time between checkpoints, such as 60s or 5m",
    "--resume": "continue from the checkpoint",
}
_CLASSES = {
    "--multiclass": "each different label is a class",
    "--classes": "all classes, if they are known",
    "--class-weight": "weights of classes A:W,..., or balanced",
}
_LOSS = {"--loss": "logistic, hinge, squared, huber, poisson, ..."}


def _without(lines: dict[str, str], *names: str) -> dict[str, str]:
    return {name: line for name, line in lines.items() if name not in names}


SHORT: dict[str, dict[str, dict[str, str]]] = {
    "demo": {
        "Stream": {
            "--examples": "number of rows",
            "--features": "number of features",
            "--relevant": "number of features that the label depends on",
            "--seed": "random seed of the stream",
            "--write": "write the stream as VW text; do not learn",
            "--quiet": "no progress, only the result",
        },
    },
    "train": {
        "Data": {**_READ, "--multilabel": "a row has any number of labels"},
        "Labels": {**_LOSS, **_CLASSES},
        "Learning": {
            "--rule": "how to learn; --rule NAME --help shows its options",
            "--passes": "passes over the data",
            "--shuffle": "shuffle the rows",
            "--seed": "random seed",
            "--l1": "lasso penalty of most rules: more is sparser",
            "--l2": "ridge penalty of some rules",
            "--target-nnz": "keep at most this many nonzero weights",
            "--store": "auto, dense, hashed or nonzero",
        },
        "Validation": {
            "--valid": "validation rows: stop when their loss stops falling",
            "--metric": "judge them by roc_auc, f1, rmse, ..., not the loss",
            "--tol": "least fall of the loss in a pass",
            "--patience": "passes without improvement before stopping",
        },
        "Long runs": {
            **_LONG_RUNS,
            "--from": "go on with the training of this model",
            "--keep-state": "let --from go on from the new model",
            "--ray": "learn on a Ray cluster: auto, local or HOST:PORT",
        },
        "Result": {
            "--model": "file to write the model to",
            "--html": "with --rule auto: a page about the race",
            **_SHOW,
        },
    },
    "tune": {
        "Search": {
            "--grid": "a parameter and its values: l1=0.1,1 or l1=1e-3..1:7",
            "--rule": "how to learn; --rule NAME --help shows its options",
            "--folds": "number of folds",
            "--scoring": "accuracy, log_loss, r2, mean_squared_error, ...",
            "--sparsest": "keep the sparsest model within one standard error",
            "--memory": "memory of all models together, such as 4G",
            "--passes": "passes over the data",
            "--shuffle": "shuffle the rows",
            "--seed": "random seed",
        },
        "Labels": {**_LOSS, **_CLASSES},
        "Data": _READ,
        "Long runs": _LONG_RUNS,
        "Result": {
            "--model": "file to write the best model to",
            "--html": "write a page about the result",
            **_SHOW,
        },
    },
    "compare": {
        "Protocol": {
            "--test": "test rows; default: a share of the rows of DATA",
            "--test-share": "share of the rows that are test rows",
            "--rules": "rules to compare: A,B,...; default: all that suit",
            "--orders": "number of random orders of the training rows",
            "--folds": "number of folds for choosing parameters",
            "--choose": "best, or sparsest within one standard error",
            "--scale": "unit-norm or variance; default: no scaling",
            "--seed": "random seed",
            "--jobs": "number of threads of the searches",
        },
        "Labels": {**_LOSS, "--multiclass": _CLASSES["--multiclass"]},
        "Data": _without(_READ, "--weight"),
        "Result": {
            "--output": "write all results as JSON",
            "--html": "write a page about the result",
            "--checkpoint": "save finished work; the same command continues",
            **_without(_SHOW, "--names"),
        },
    },
    "discover": {
        "Selection": {
            "--fdr": "expected share of false features among those found",
            "--expected-false": "expected number of false features instead",
            "--form": "crossfit, stream, joint or auto",
            "--group-namespaces": "select whole namespaces of VW text",
            "--task": "classification, regression or auto",
            "--classes": _CLASSES["--classes"],
            "--folds": "number of folds of a crossfit",
            "--redraws": "how often labels are redrawn from the model",
            "--shuffle": "hold the rows in memory, read in random order",
            "--seed": "random seed",
            "--memory": "memory of the models, such as 4G",
        },
        "Data": _READ,
        "Long runs": _LONG_RUNS,
        "Result": {
            "--top": "show this many of the strongest features",
            "--why": "say what the evidence for this feature is",
            "--html": "write a page about the result",
            "--json": "write the whole result as JSON",
            "--csv": "write the features as CSV",
            "--model": "fit the selected features, and write the model",
            **_without(_SHOW, "--names", "--json"),
        },
    },
    "predict": {
        "Predictions": {
            "MODEL": "a model that train wrote",
            "DATA...": _READ["DATA..."],
            "--output": "write the predictions to this file",
            "--as": "label, probability or raw",
            "--line-buffered": "answer lines of svmlight or VW text at once",
            "--explain": "add the features that contribute most",
            "--json": "with --explain: a JSON object per row",
        },
        "Data": {
            name: _READ[name]
            for name in ("--format", "--label", "--zero-based", "--threads", "--on-bad-line")
        },
        "Result": {"--quiet": _SHOW["--quiet"], "--strict": _SHOW["--strict"]},
    },
    "evaluate": {
        "Evaluation": {
            "MODEL": "a model that train wrote",
            "DATA...": "files with labels; a second model first: compare them",
            "--against": "compare with this model on the same rows",
            "--bootstrap": "replicates for the intervals; 0: no intervals",
            "--seed": "random seed of the bootstrap",
            "--shares": "shares of the rows for the lift, such as 0.01,0.1",
            "--at": "k of precision at k and nDCG at k, such as 1,3,5",
            "--quantile": "quantile of the quantile loss of a regression",
        },
        "Data": {
            name: _READ[name]
            for name in (
                "--format",
                "--label",
                "--weight",
                "--zero-based",
                "--threads",
                "--on-bad-line",
            )
        },
        "Result": {
            "--html": "write a page: curves, thresholds, confusion",
            "--json": "print all results as one JSON object",
            "--quiet": _SHOW["--quiet"],
            "--strict": _SHOW["--strict"],
        },
    },
    "inspect": {
        "Show": {
            "MODEL": "a model that train wrote",
            "--top": "number of largest weights",
            "--why": "all facts about this feature, a name or a number",
            "--class": "only the weights of this class",
            "--json": "print JSON",
        },
        "Page": {
            "--html": "write a full report",
            "--data": "rows with labels: the page shows how well it predicts",
            "--against": "show what changed since this model",
            "--strict": _SHOW["--strict"],
        },
    },
    "merge": {
        "Models": {
            "MODEL...": "two or more models, not of the default rule one-pass",
            "--model": "file to write the merged model to",
            "--weights": "how much each model counts; default: its rows",
        },
        "Result": {"--quiet": _SHOW["--quiet"], "--strict": _SHOW["--strict"]},
    },
    "serve": {
        "Server": {
            "MODEL...": "models that train wrote; NAME=FILE names one",
            "--port": "0: a free port",
            "--host": "address to listen on; a public one needs a token",
            "--token-file": "requests must have the token in this file",
            "--reload": "seconds between looks for changed model files",
            "--learn": "answer POST /learn; keep its log in this folder",
            "--checkpoint-every": "with --learn: seconds between two checkpoints",
            "--access-log": "write a line for each request",
        },
        "Limits": {
            "--max-body": "bytes of the body of a request",
            "--max-rows": "rows of a request",
            "--timeout": "seconds to receive a body, and to compute an answer",
            "--max-connections": "connections at the same time",
        },
        "Result": {"--quiet": _SHOW["--quiet"], "--strict": _SHOW["--strict"]},
    },
    "export": {
        "Form": {
            "MODEL": "a model that train wrote",
            "--to": "onnx, sql, json, csv or vw; default: from FILE",
            "--output": "write to this file",
            "--dialect": "with sql: sqlite, duckdb, postgres or mysql",
            "--table": "with sql: a query over this table",
            "--inputs": "with onnx: matrix, or dict of named features",
        },
    },
    "convert": {
        "Files": {
            "IN... OUT": "files to read, then the file to write",
            "--to": "format of OUT, if its name does not set it",
        },
        "Data": {**_without(_READ, "DATA..."), "--multilabel": "a row has any number of labels"},
        "Result": {"--quiet": _SHOW["--quiet"], "--strict": _SHOW["--strict"]},
    },
}
