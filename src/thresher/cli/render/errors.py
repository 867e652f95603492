"""Errors of the library in the words of the shell: options instead of Python parameters."""

from __future__ import annotations

from thresher.errors import (
    BalanceError,
    Explained,
    LabelError,
    ReadOnceError,
    Setting,
    SplitError,
)
from thresher.health.column_scales import ColumnScaleWarning

# Options by function and parameter, where the option is not `--` and the parameter's name.
# None: any function.
_OPTIONS = {
    ("compare", "n_jobs"): "--jobs",
    ("save", "state"): "--keep-state",
    ("write", "format"): "--to",
    (None, "address"): "--ray",
    (None, "cv"): "--folds",
    (None, "eval_set"): "--valid",
    (None, "memory_limit"): "--memory",
    (None, "n_jobs"): "--threads",
    (None, "random_state"): "--seed",
    (None, "replicates"): "--bootstrap",
    (None, "to_onnx"): "--to onnx",
}
_VALUES = {  # another option, or an option without a value, has the same effect
    ("task", "regression"): "--loss squared",
    ("shuffle", "each"): "--shuffle",
}

# Messages about labels of two classes.
TWO_CLASSES = "labels must be -1 and 1, or 0 and 1, for two classes"
OTHER_LABELS = "use --multiclass for other classes, or --loss squared for numbers"
_SCALE = "use --scale standard, or --rule one-pass, which does not depend on the scale"
_HINTS = {  # replace the hint of the error
    ColumnScaleWarning: _SCALE,
    BalanceError: "give CLASS:WEIGHT,...",
    LabelError: OTHER_LABELS,
    SplitError: "use fewer --folds",
}

# Messages about a source that can be read only once, by parameter.
_READ_ONCE = {
    "bits": "the number of features must be known in advance: {} needs --bits, or --cache FILE",
    "center": "--center must read the rows twice: {} needs --cache FILE",
    "scale": "--scale must read the rows twice: {} needs --cache FILE",
    "form": "two readings of {} need --cache FILE; --form stream needs one reading",
    "classes": "several classes from {} need --classes, or --cache FILE to find them",
}
_PASSES = "more than one pass over {} needs --cache FILE"


def option_of(name: str, owner: str | None = None) -> str:
    """Return the option for a parameter.

    Parameters
    ----------
    name : str
        The parameter's name in Python.
    owner : str or None
        The function that takes it.

    Examples
    --------
    >>> option_of("target_nnz"), option_of("memory_limit"), option_of("n_jobs", "compare")
    ('--target-nnz', '--memory', '--jobs')
    """
    usual = _OPTIONS.get((None, name), "--" + name.replace("_", "-"))
    return _OPTIONS.get((owner, name), usual)


def shell_message(error: BaseException) -> str:
    """Return an error's message in the words of the shell.

    Parameters
    ----------
    error : exception

    Examples
    --------
    >>> from thresher.errors import OutOfMemoryError, setting
    >>> advice = "raise ", setting("memory_limit"), ", or use ", setting("store", "hashed")
    >>> error = OutOfMemoryError("a model takes 2 GB", hint=advice)
    >>> print(error)
    a model takes 2 GB; raise memory_limit, or use store='hashed'
    >>> print(shell_message(error))
    a model takes 2 GB; raise --memory, or use --store hashed
    """
    if not isinstance(error, Explained):
        return str(error)
    if isinstance(error, ReadOnceError) and error.source:
        source = "standard input" if error.source == "-" else error.source
        return _READ_ONCE.get(error.parameter or "", _PASSES).format(source)

    def word(named: Setting) -> str:
        return _worded(named, error.owner)

    message = error.worded(word, hint=_HINTS.get(type(error)))
    if error.allowed is not None:  # the shell has no None
        message = message.replace(error.allowed, error.allowed.removesuffix(", or None"), 1)
    return message


def _worded(named: Setting, owner: str | None) -> str:
    """Return a setting as an option."""
    option, value = option_of(named.name, named.call or owner), named.value
    if value is ... or value is True:
        return option
    if isinstance(value, str) and (named.name, value) in _VALUES:
        return _VALUES[named.name, value]
    if named.name == "scoring":  # scikit-learn negates errors
        value = str(value).removeprefix("neg_")
    if value is False:
        return "--no-" + option.removeprefix("--")
    return f"{option} {value}"
