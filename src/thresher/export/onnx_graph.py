"""A model as an ONNX graph: columns are gathered, and multiplied in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher._version import __version__
from thresher.errors import ParameterError
from thresher.export.refusals import check_linear, check_names_differ
from thresher.losses import LOSSES

if TYPE_CHECKING:
    from thresher.model.model import Model

__all__ = ["INPUTS", "to_onnx"]

INPUTS = ("auto", "matrix", "dict")
_OPSET, _ML_OPSET, _IR = 17, 3, 8  # what onnxruntime reads since 1.13
_WIDEST = 2**24  # columns of a dense matrix: a row takes 64 MB
_EXPONENT = 709.0  # exponentials of numbers up to here are finite
_MOST_WEIGHTS = 2**27  # a file of ONNX has at most 2 GB; a weight takes 8 bytes


def to_onnx(model: Model, names: Sequence[str] | None = None, inputs: str = "auto") -> bytes:
    """Return a model as the bytes of an ONNX file.

    Parameters
    ----------
    model : Model
    names : sequence of str, optional
        Names of all features, for `inputs` "dict".
    inputs : {"auto", "matrix", "dict"}
    """
    if inputs not in INPUTS:
        raise ParameterError(
            parameter="inputs", value=inputs, allowed=f"one of {', '.join(INPUTS)}"
        )
    check_linear(model, "ONNX")
    named = model if names is None else model.named(names)
    if inputs == "auto":
        by_name = model.n_features == 2**64 or model.parameters.get("kinds") or names is not None
        inputs = "dict" if by_name else "matrix"
    keys = np.unique(model.indices)
    if len(keys) * len(model.intercept) > _MOST_WEIGHTS:
        raise ParameterError(
            f"{len(keys):,} features and {len(model.intercept):,} outputs are more than "
            f"{_MOST_WEIGHTS:,} weights, which one file of ONNX cannot hold"
        )
    try:
        import onnx
    except ImportError:
        raise ParameterError(
            "to_onnx needs the package onnx: pip install 'thresher[export]'"
        ) from None
    graph = _Graph(onnx)
    if inputs == "matrix":
        graph.read_matrix(model, keys)
    else:
        graph.read_dict(_vocabulary(named, keys))
    graph.score(_table(model, keys), model.intercept)
    if model.classes is None:
        graph.value(model.loss)
    else:
        graph.classes(model)
    return graph.bytes(model)


def _vocabulary(model: Model, keys: NDArray[np.uint64]) -> list[str]:
    """Return the names of the features; raise ParameterError if they are not known."""
    names = [model.name(key) for key in keys.tolist()]
    unnamed = [name for name in names if not isinstance(name, str)]
    if unnamed:
        raise ParameterError(
            f"feature {unnamed[0]} has no name: ONNX takes features of hashed names by name",
            hint="train with the option names, or give names of all features",
        )
    found = [str(name) for name in names]
    check_names_differ(found)
    return found


def _table(model: Model, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the weights of shape (features, outputs); a model without weights has a zero."""
    outputs = np.repeat(np.arange(len(model.intercept)), np.diff(model.indptr))
    table = np.zeros((max(len(keys), 1), len(model.intercept)))
    table[np.searchsorted(keys, model.indices), outputs] = model.weights
    return table


class _Graph:
    """The nodes and constants of a graph, in the order of computation."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.helper, self.types = onnx, onnx.helper, onnx.TensorProto
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        self.nodes.append(self.helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, name: str, values: Any) -> str:
        """Add a constant; return its name."""
        self.constants[name] = self.onnx.numpy_helper.from_array(np.asarray(values), name)
        return name

    # ---- inputs --------------------------------------------------------------------------------

    def read_matrix(self, model: Model, keys: NDArray[np.uint64]) -> None:
        """Take a dense matrix, and the columns that have weights of it."""
        if model.n_features > _WIDEST:
            width = "any number of" if model.n_features == 2**64 else f"{model.n_features:,}"
            raise ParameterError(
                f"the model has {width} features, and a dense matrix for ONNX at most {_WIDEST:,}",
                hint="inputs='dict' takes features by name",
            )
        kind, shape = self.types.FLOAT, ["rows", model.n_features]
        self.inputs.append(self.helper.make_tensor_value_info("X", kind, shape))
        places = self.constant("columns", keys.astype(np.int64) if len(keys) else np.zeros(1, int))
        self.add("Gather", ["X", places], "selected", axis=1)

    def read_dict(self, names: list[str]) -> None:
        """Take one row as a map from names to numbers."""
        kind = self.helper.make_tensor_type_proto(self.types.FLOAT, [])
        kind = self.helper.make_map_type_proto(self.types.STRING, kind)
        self.inputs.append(self.helper.make_value_info("X", kind))
        self.add(
            "DictVectorizer", ["X"], "selected",
            domain="ai.onnx.ml", string_vocabulary=names or [""],
        )  # fmt: skip

    # ---- results -------------------------------------------------------------------------------

    def score(self, table: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        """Compute the scores of all outputs, of shape (rows, outputs)."""
        self.add("Cast", ["selected"], "doubles", to=self.types.DOUBLE)
        self.add("MatMul", ["doubles", self.constant("weights", table)], "products")
        self.add("Add", ["products", self.constant("intercept", intercept)], "score")

    def value(self, loss: str) -> None:
        """Return the predicted values, of shape (rows, 1)."""
        self.add("Cast", [self._linked("score", loss)], "value", to=self.types.FLOAT)
        self._output("value", self.types.FLOAT, ["rows", 1])

    def classes(self, model: Model) -> None:
        """Return the labels, then the probabilities; scores, if the loss has no probabilities."""
        assert model.classes is not None
        known, several = self._labels(model.classes), len(model.intercept) > 1
        if several:
            place = self.add("ArgMax", ["score"], "place", axis=1, keepdims=0)
        else:
            zero = self.constant("zero", np.zeros(1))
            self.add("GreaterOrEqual", ["score", zero], "second")
            self.add("Cast", ["second"], "places", to=self.types.INT64)
            shape = self.constant("flat", np.array([-1], np.int64))
            place = self.add("Reshape", ["places", shape], "place")
        self.add("Gather", [self.constant("labels", known), place], "label", axis=0)
        kind = self.helper.np_dtype_to_tensor_dtype(known.dtype)
        self._output("label", self.types.STRING if known.dtype == object else kind, ["rows"])
        width = len(model.classes)
        if LOSSES[model.loss].link == "identity":
            self.add("Cast", ["score"], "scores", to=self.types.FLOAT)
            self._output("scores", self.types.FLOAT, ["rows", width if several else 1])
            return
        share = self._linked("score", model.loss)
        shares = self._divided(share, width) if several else self._pair(share)
        self.add("Cast", [shares], "probabilities", to=self.types.FLOAT)
        self._output("probabilities", self.types.FLOAT, ["rows", width])

    @staticmethod
    def _labels(classes: NDArray[Any]) -> NDArray[Any]:
        """Return the labels as strings, or as whole numbers, or as other numbers."""
        if classes.dtype.kind in "biu":
            return classes.astype(np.int64)
        if classes.dtype.kind == "f":
            whole = bool((classes == np.floor(classes)).all() and (abs(classes) < 2**53).all())
            return classes.astype(np.int64 if whole else np.float64)
        return np.array([str(label) for label in classes.tolist()], object)

    def _linked(self, score: str, loss: str) -> str:
        link, low = LOSSES[loss].link, LOSSES[loss].low
        if link == "sigmoid":
            return self._sigmoid(score)
        if link == "identity":
            return score
        ends = (-30.0, 30.0) if link == "exp" else (low, 1.0)
        bounds = [self.constant(name, end) for name, end in zip(("low", "high"), ends, strict=True)]
        clipped = self.add("Clip", [score, *bounds], "clipped")
        if link == "exp":
            return self.add("Exp", [clipped], "linked")
        self.add("Sub", [clipped, "low"], "above")
        return self.add("Div", ["above", self.constant("range", np.float64(1.0 - low))], "linked")

    def _sigmoid(self, score: str) -> str:
        """Return 1 / (1 + exp(-score)).

        The Sigmoid of onnxruntime is 0 below -37, so that shares of several classes would be lost.
        """
        ends = zip(("least", "most"), (-_EXPONENT, _EXPONENT), strict=True)
        bounds = [self.constant(name, np.float64(end)) for name, end in ends]
        self.add("Neg", [score], "negated")
        self.add("Clip", ["negated", *bounds], "exponent")
        self.add("Exp", ["exponent"], "odds")
        unit = self.constant("unit", np.float64(1.0))
        self.add("Add", ["odds", unit], "more")
        return self.add("Div", [unit, "more"], "linked")

    def _pair(self, share: str) -> str:
        """Return 1 - p and p."""
        self.add("Sub", [self.constant("one", np.float64(1.0)), share], "first")
        return self.add("Concat", ["first", share], "pair", axis=1)

    def _divided(self, share: str, count: int) -> str:
        """Return the shares of each row divided by their sum; equal ones if the sum is 0."""
        axes = self.constant("axes", np.array([1], np.int64))
        self.add("ReduceSum", [share, axes], "total", keepdims=1)
        self.add("Greater", ["total", self.constant("nothing", np.float64(0.0))], "some")
        self.add("Div", [share, "total"], "divided")
        return self.add(
            "Where", ["some", "divided", self.constant("even", np.float64(1.0 / count))], "normal"
        )

    def _output(self, name: str, kind: int, shape: Sequence[Any]) -> None:
        self.outputs.append(self.helper.make_tensor_value_info(name, kind, list(shape)))

    def bytes(self, model: Model) -> bytes:
        """Return the file, after the checks of ONNX."""
        made = self.helper.make_graph(
            self.nodes, "thresher", self.inputs, self.outputs, list(self.constants.values())
        )
        opsets = [
            self.helper.make_opsetid("", _OPSET),
            self.helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
        ]
        found = self.helper.make_model(
            made, opset_imports=opsets, ir_version=_IR, producer_name="thresher",
            producer_version=__version__,
        )  # fmt: skip
        self.helper.set_model_props(
            found, {"loss": model.loss, "rule": str(model.parameters.get("rule", ""))}
        )
        self.onnx.checker.check_model(found)
        content: bytes = found.SerializeToString()
        return content
