"""Errors have facts; each has a message for Python and one for the shell."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from thresher import DataError, DivergenceError, ModelFileError, ParameterError
from thresher.cli.render.errors import option_of, shell_message
from thresher.data.writing import format_of
from thresher.errors import (
    BalanceError,
    ClusterError,
    DataWarning,
    InputError,
    LabelError,
    OutOfMemoryError,
    ReadOnceError,
    SplitError,
    StepError,
    setting,
)
from thresher.search.folds import check_classes
from thresher.search.model_groups import checked_limit
from thresher.threads import threads_of

PACKAGE = Path(thresher.__file__).parent
HASHED = "use ", setting("store", "hashed"), ", or ", setting("bits", call="scan")

EXAMPLES = [
    (
        ParameterError(owner="FTRLClassifier", parameter="l1", value=-1, allowed="a number >= 0"),
        "FTRLClassifier: l1 must be a number >= 0; got -1",
        "--l1 must be a number >= 0; got -1",
    ),
    (
        ParameterError(parameter="memory_limit", value=0, allowed="at least 1"),
        "memory_limit must be at least 1; got 0",
        "--memory must be at least 1; got 0",
    ),
    (
        ParameterError(parameter="scale", value="x", allowed="one of 'a', 'b', or None"),
        "scale must be one of 'a', 'b', or None; got 'x'",
        "--scale must be one of 'a', 'b'; got 'x'",
    ),
    (
        ParameterError((setting("average", True), " excludes ", setting("target_nnz"))),
        "average=True excludes target_nnz",
        "--average excludes --target-nnz",
    ),
    (
        ParameterError((setting("shuffle", False), " needs ", setting("cv", 3)), place="a.svm"),
        "a.svm: shuffle=False needs cv=3",
        "a.svm: --no-shuffle needs --folds 3",
    ),
    (
        InputError("too many features", place="a.svm:3", hint=HASHED),
        "a.svm:3: too many features; use store='hashed', or bits= in scan",
        "a.svm:3: too many features; use --store hashed, or --bits",
    ),
    (
        OutOfMemoryError("no memory", hint=("raise ", setting("memory_limit"))),
        "no memory; raise memory_limit",
        "no memory; raise --memory",
    ),
    (
        ModelFileError("another run", place="out", hint=("use ", setting("resume", True))),
        "out: another run; use resume=True",
        "out: another run; use --resume",
    ),
    (
        ClusterError("Ray failed", hint=(setting("workers", 0), " needs no Ray")),
        "Ray failed; workers=0 needs no Ray",
        "Ray failed; --workers 0 needs no Ray",
    ),
    (
        LabelError("the label is 5", place="a:1", value=5, allowed="0 and 1", hint="give classes="),
        "a:1: the label is 5; give classes=",
        "a:1: the label is 5; use --multiclass for other classes, or --loss squared for numbers",
    ),
    (
        DataWarning("990 different values", place="a.csv", hint=("use ", setting("text", "a"))),
        "a.csv: 990 different values; use text='a'",
        "a.csv: 990 different values; use --text a",
    ),
    (
        SplitError((setting("cv"), ": no row of class 7"), hint="use fewer splits"),
        "cv: no row of class 7; use fewer splits",
        "--folds: no row of class 7; use fewer --folds",
    ),
    (
        BalanceError((setting("class_weight", "balanced"), " needs counts"), hint="give a dict"),
        "class_weight='balanced' needs counts; give a dict",
        "--class-weight balanced needs counts; give CLASS:WEIGHT,...",
    ),
    (
        StepError("too long", owner="HardThresholdRegressor", hint=("use ", setting("step", 0.5))),
        "HardThresholdRegressor: too long; use step=0.5",
        "too long; use --step 0.5",
    ),
    (
        ReadOnceError("no classes", source="a.pipe", parameter="classes", hint="give them"),
        "no classes; give them",
        "several classes from a.pipe need --classes, or --cache FILE to find them",
    ),
    (
        ReadOnceError("read before", source="-", place="-"),
        "-: read before",
        "more than one pass over standard input needs --cache FILE",
    ),
    (ParameterError("the folder {a}"), "the folder {a}", "the folder {a}"),  # not a format string
]


@pytest.mark.parametrize(("error", "python", "shell"), EXAMPLES)
def test_messages(error: Any, python: str, shell: str) -> None:
    assert str(error) == python
    assert shell_message(error) == shell


@pytest.mark.parametrize(("error", "python", "shell"), EXAMPLES)
def test_facts_survive_pickling(error: Any, python: str, shell: str) -> None:
    error.add_note("on another machine")
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert vars(found) == vars(error)
    assert found.__notes__ == error.__notes__
    assert (str(found), shell_message(found)) == (python, shell)


def test_the_message_survives_a_value_that_cannot_be_pickled() -> None:
    error = ParameterError(parameter="callback", value=lambda: 0, allowed="None")
    error.add_note("on another machine")
    found = pickle.loads(pickle.dumps(error))
    assert str(found) == str(error)
    assert found.__notes__ == ["on another machine"]


def test_at_adds_a_place_before_the_message() -> None:
    error = InputError("bad", place="row 3", hint=HASHED).at("batch 2")
    assert isinstance(error, InputError)
    assert str(error) == "batch 2: row 3: bad; use store='hashed', or bits= in scan"


def test_base_classes_of_errors() -> None:
    """Code that catches the base classes also catches the errors with facts."""
    assert issubclass(InputError, DataError)
    assert issubclass(LabelError, DataError)
    assert issubclass(OutOfMemoryError, MemoryError)
    assert issubclass(SplitError, ParameterError)
    assert issubclass(ParameterError, ValueError)
    assert issubclass(ClusterError, RuntimeError)
    assert issubclass(StepError, DivergenceError)
    assert issubclass(ReadOnceError, ParameterError)


def test_options() -> None:
    assert option_of("eval_set") == "--valid"
    assert option_of("n_jobs") == "--threads"
    assert option_of("n_jobs", "compare") == "--jobs"
    assert option_of("on_bad_line") == "--on-bad-line"


# ---- errors of the library -----------------------------------------------------------------------


def raised(call: Any, kind: type[Any] = ParameterError) -> Any:
    with pytest.raises(kind) as caught:
        call()
    return caught.value


def test_parameters_of_rules() -> None:
    clf = thresher.TruncatedGradientClassifier
    X, y = np.eye(2), [0, 1]
    error = raised(lambda: clf(gravity=-1).fit(X, y))
    assert (error.owner, error.parameter, error.value) == (clf.__name__, "gravity", -1)
    assert error.allowed.startswith("a number >= 0")
    assert shell_message(error) == f"--gravity must be {error.allowed}; got -1"
    error = raised(lambda: clf(shrink="round").fit(X, y))
    assert str(error) == "TruncatedGradientClassifier: shrink='round' needs a finite ceiling"
    assert shell_message(error) == "--shrink round needs a finite --ceiling"
    error = raised(lambda: clf(target_nnz=1, average=True).fit(X, y))
    assert (error.parameter, error.value) == ("average", True)
    assert shell_message(error).startswith("--average cannot be combined with --target-nnz, which")


ONCE = [
    (
        thresher.FTRLClassifier(passes=2),
        "more than one pass over iterator, which can be read only once, needs a cache",
        "more than one pass over iterator needs --cache FILE",
    ),
    (
        thresher.FTRLClassifier(passes=1),
        "iterator can be read only once, and its classes are not known; use partial_fit with",
        "several classes from iterator need --classes, or --cache FILE to find them",
    ),
    (
        thresher.MirrorDescentRegressor(passes=1),
        "needs the number of features before training, and iterator can be read only once: give "
        "bits= in scan",
        "the number of features must be known in advance: iterator needs --bits, or --cache FILE",
    ),
    (
        thresher.AveragedSGDRegressor(passes=1, center=True),
        "center=True must read the rows twice, and iterator can be read only once",
        "--center must read the rows twice: iterator needs --cache FILE",
    ),
]


@pytest.mark.parametrize(("estimator", "python", "shell"), ONCE)
def test_sources_that_can_be_read_only_once(estimator: Any, python: str, shell: str) -> None:
    error = raised(lambda: estimator.fit(thresher.scan(iter([(np.eye(2), [0, 1])]))))
    assert isinstance(error, ReadOnceError)
    assert str(error).startswith(f"{type(estimator).__name__}: {python}")
    assert shell_message(error) == shell


def test_other_errors_of_fit() -> None:
    X, y = np.eye(2), [0, 1]
    rows, named = (lambda: iter([(X, y)])), (lambda: iter([({"a": 1.0}, 0), ({"b": 1.0}, 1)]))
    clf = thresher.FTRLClassifier
    error = raised(lambda: clf(class_weight="balanced").partial_fit(X, y, classes=y))
    assert shell_message(error) == (
        "--class-weight balanced needs all rows at once; give CLASS:WEIGHT,..."
    )
    error = raised(lambda: clf(class_weight={7: 2.0}).fit(thresher.scan(rows)))
    assert shell_message(error).startswith("--class-weight has weights of ['7']")
    error = raised(lambda: clf(store="dense").fit(thresher.scan(named)))
    assert str(error).endswith("need store='hashed', or bits= in scan to number them")
    assert shell_message(error).endswith("need --store hashed, or --bits to number them")
    error = raised(lambda: clf().fit(X, y, eval_set=X))
    assert shell_message(error).startswith("--valid must be ")
    error = raised(lambda: clf(random_state="x").fit(X, y))
    assert shell_message(error).startswith("--seed: ")
    error = raised(lambda: thresher.AveragedSGDRegressor(loss="poisson").fit(X, y))
    assert (error.parameter, error.value) == ("loss", "poisson")
    assert "diverge with --loss 'poisson'" in shell_message(error)


def test_labels_of_two_classes() -> None:
    clf = thresher.FTRLClassifier(passes=1)
    search = thresher.OnePassSearchCV(clf, {"l1": [1.0, 2.0]}, cv="progressive")
    pipe = thresher.scan(iter([([[1.0]], [1.0]), ([[2.0]], [5.0])]))
    error = raised(lambda: search.fit(pipe), LabelError)
    assert (error.value, error.allowed) == (5.0, "-1 and 1, or 0 and 1")
    assert str(error).endswith("; give fit classes= for other labels")
    advice = "; use --multiclass for other classes, or --loss squared for numbers"
    assert shell_message(error).endswith(advice)


def test_reading() -> None:
    error = raised(lambda: thresher.scan("a.svm", bits=50))
    assert str(error) == "bits must be a whole number from 1 to 40; got 50"
    assert shell_message(error) == "--bits must be a whole number from 1 to 40; got 50"
    error = raised(lambda: format_of("rows.what"))
    assert str(error).endswith("or set format= in write")
    assert shell_message(error).endswith("or set --to")


def test_searches_and_comparisons() -> None:
    assert shell_message(raised(lambda: checked_limit(0))).startswith("--memory must be a number")
    error = raised(lambda: check_classes(np.array([[1, 0]]), np.array([2, 7])))
    assert shell_message(error).endswith("has no row of class 7; use fewer --folds")
    assert shell_message(raised(lambda: threads_of(0))).startswith("--threads must be ")
    error = raised(lambda: thresher.compare(np.eye(4), [0, 1, 0, 1], n_jobs=0))
    assert shell_message(error).startswith("--jobs must be ")


# ---- the texts in the source code ----------------------------------------------------------------

# Texts that may contain options: pages that show commands, `thresher.look`, which suggests them,
# style sheets, and a command of Ray.
ALLOWED = ("overview/", "report/usage.py", "report/style.py", "`ray start --head`")


def texts(path: Path) -> list[str]:
    """Return the strings of a module, without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def test_the_library_does_not_name_options() -> None:
    named = [
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if "cli" not in path.relative_to(PACKAGE).parts
        for text in texts(path)
        if re.search(r"(^|[\s(`'\"])--[a-z]", text)
    ]
    assert [text for text in named if not any(part in text for part in ALLOWED)] == []
