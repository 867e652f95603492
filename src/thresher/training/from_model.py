"""From a model back to the state of the training that made it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from thresher.errors import ModelFileError, OutOfMemoryError, ParameterError, setting
from thresher.health.label_order import LabelOrder
from thresher.losses import Task
from thresher.model import name_tensors
from thresher.model.file import StateInFile
from thresher.model.model import Model, Output
from thresher.rules import RULES, core_args, validate
from thresher.training.bits import bits_of, check_bits
from thresher.training.fitted import FittedState
from thresher.training.fitting import Specification
from thresher.training.name_cache import NameCache
from thresher.training.refit import Refit
from thresher.training.shared_outputs import group_count

_MOST_FEATURES = 2**40  # of a dense store: those of the largest number of bits
_DAMAGE = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError,
    ZeroDivisionError, AssertionError,
)  # fmt: skip


def task_of(model: Model) -> Task:
    """Return the task of a model."""
    return "regressor" if model.classes is None else "classifier"


def specification_of(model: Model, params: Mapping[str, Any]) -> Specification:
    """Return the rule of a model with these parameters.

    Raises ParameterError if no estimator can have learned the model.
    """
    rule, task = str(model.parameters.get("rule")), task_of(model)
    if rule not in RULES or task not in RULES[rule].tasks:
        raise ParameterError(f"the model is of the rule {rule!r}, which has no {task}")
    owner = RULES[rule].estimators[task]
    defaults = {name: p.default_for(task) for name, p in RULES[rule].parameters.items()}
    known = {name: value for name, value in params.items() if name in defaults}
    spec = Specification(rule, task, {**defaults, **known}, owner)
    validate.check(rule, task, spec.params, owner)
    return spec


def continued(model: Model) -> tuple[FittedState, Specification]:
    """Return the state from which training goes on, and the rule with its parameters.

    Parameters
    ----------
    model : Model

    Raises
    ------
    ParameterError
        The model has no state; the message says why.
    ModelFileError
        The state is damaged, or is of a version whose results have other bits.
    """
    kept = model.learner
    if kept is None:
        raise ParameterError(
            "the model has no state of a learner, only its weights",
            hint=("models written with ", setting("state", True, call="save"), " have one"),
        )
    place = kept.path if isinstance(kept, StateInFile) else "the model"
    version = kept.version if isinstance(kept, StateInFile) else ""
    tensors = kept.tensors()
    try:
        about = json.loads(tensors["about"].tobytes())
        rule = str(model.parameters["rule"])
        bits = bits_of(rule, shuffle=False, named=bool(about["reading"]), weighted=True)
        check_bits(about["bits"], bits, place, version)
        spec = specification_of(model, _parameters(about["own"]))
        state = _restored(model, spec, about, tensors)
    except ModelFileError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"{place}: not enough memory for the learner's state") from error
    except _DAMAGE as error:
        raise ModelFileError(f"{place}: the learner's state is damaged: {error}") from error
    if isinstance(kept, StateInFile):
        state.origin = kept.checksum
    return state, spec


def only_weights(model: Model, why: str) -> tuple[FittedState, Specification]:
    """Return a state that predicts as a model, and the rule with the parameters of the model.

    Parameters
    ----------
    model : Model
    why : str
        Why training cannot continue, as the end of a sentence.
    """
    spec = specification_of(model, _written(model))
    params = core_args.learner_parameters(spec.rule, spec.params)
    passes = model.parameters.get("passes")
    extras: dict[str, Any] = {"certificates": model.certificates} if model.certificates else {}
    if model.evidence is not None:
        extras["evidence"] = model.evidence
    return (
        FittedState(
            rule=spec.rule,
            params=params,
            requested=params,
            rows=None,
            width=model.n_features,
            weights=outputs_of(model),
            extras=extras,
            final=True,
            obstacle=why,
            multilabel="sparse" if model.multilabel else "",
            passes=passes if isinstance(passes, int) and passes > 0 else 1,
            **_common(model, [name for name in model.parameters if name not in spec.params]),
        ),
        spec,
    )


def outputs_of(model: Model) -> list[Output]:
    """Return the weights and the intercept of each output."""
    ends = zip(model.indptr[:-1], model.indptr[1:], model.intercept.tolist(), strict=True)
    return [Output(model.indices[a:b], model.weights[a:b], bias) for a, b, bias in ends]


def _common(model: Model, reading: Sequence[str]) -> dict[str, Any]:
    """Return what a model says of a state; `reading`: the options of reading among parameters."""
    known = model.parameters
    from_source = "first" in known  # rows in memory have no options of reading
    try:
        kinds = dict(json.loads(str(known.get("kinds") or "{}")))
    except (TypeError, ValueError):
        raise ModelFileError("the kinds of the model's columns cannot be read") from None
    return {
        "history": [record._replace(seconds=0.0) for record in model.history],
        "classes": model.classes,
        "names": None if model.names is None else dict(model.names),
        "kinds": kinds or None,
        "reading": {name: known[name] for name in reading if from_source and name != "rule"},
        "place": model.frontier,
    }


def _restored(
    model: Model, spec: Specification, about: Mapping[str, Any], tensors: Mapping[str, Any]
) -> FittedState:
    requested, params = (_parameters(about[name]) for name in ("requested", "params"))
    wanted = set(core_args.learner_parameters(spec.rule, spec.params))
    for own in (requested, params):
        if set(own) != wanted:
            raise ValueError("its parameters are not those of the rule")
        validate.check(spec.rule, spec.task, {**spec.params, **own}, spec.owner)
    if core_args.loss_of(spec.rule, params) != model.loss:
        raise ValueError("its loss is not that of the model")
    outputs = len(model.intercept)
    if _count(about["outputs"]) != outputs or not RULES[spec.rule].streams:
        raise ValueError("it is of another model")
    if about["multilabel"] not in (("dense", "sparse") if model.multilabel else ("",)):
        raise ValueError("the format of its labels is not that of the model")
    if params.get("store") == "dense" and model.n_features > _MOST_FEATURES:
        raise ValueError("it has too many features for a dense store")
    state = FittedState(
        rule=spec.rule,
        params=params,
        requested=requested,
        rows=None if about["rows"] is None else _count(about["rows"]),
        width=model.n_features,
        passes=_count(about["passes"]),
        runs=_count(about["runs"]),
        recorded=_pair(about["recorded"]),
        multilabel=about["multilabel"],
        standardised=bool(about["standardised"]),
        separate=bool(about["separate"]),
        row_by_row=bool(about["row_by_row"]),
        **_common(model, about["reading"]),
    )
    vars(state.watch).update(_alike(vars(state.watch), about["watch"]))
    if about["order"] is not None:
        state.order = LabelOrder(model.classes is not None)
        state.order.state = _alike(state.order.state, about["order"])
    _restore_names(state, about, tensors)
    states = [tensors[f"state{i}"].tobytes() for i in range(_states_in(tensors))]
    factory = state.factory
    grows = model.classes is not None and len(model.classes) == 1  # it waits for other classes
    if factory.is_shared(2 if grows else outputs):
        _check_lanes(states, outputs, factory.store)
    state.outputs = factory.restore(states, outputs, grows)
    state.hooks = spec.hooks()
    state.hooks.revive(about["hooks"], state.outputs)
    if about["refit"] is not None:
        state.refit = _refit(about["refit"], model)
    return state


def _restore_names(
    state: FittedState, about: Mapping[str, Any], tensors: Mapping[str, Any]
) -> None:
    further: dict[int, bytes] = {}
    if set(name_tensors.TENSORS) <= set(tensors):
        further = name_tensors.from_tensors(tensors)
    known = state.names or {}
    if about["most_names"] is not None:
        state.seen_names = NameCache()
        own = {key: name.encode("utf-8", "surrogatepass") for key, name in known.items()}
        state.seen_names.restore({**own, **further}, _count(about["most_names"]))
    names = {key: name.decode("utf-8", "surrogatepass") for key, name in further.items()}
    state.names = {**known, **names} if about["named"] else None


def _states_in(tensors: Mapping[str, Any]) -> int:
    return sum(name.startswith("state") for name in tensors)


def _check_lanes(states: Sequence[bytes], outputs: int, store: str) -> None:
    """Raise ValueError if lanes of outputs that learn together do not match their states."""
    about = json.loads(states[0])
    sizes, lane_of = [_count(size) for size in about["sizes"]], about["lane_of"]
    if min(sizes, default=0) < 1 or len(states) - 1 != group_count(sizes, store):
        raise ValueError("its lanes do not match their states")
    lanes = {_count(lane) for lane in lane_of}
    if len(lane_of) != outputs or len(lanes) != outputs or max(lanes) >= sum(sizes):
        raise ValueError("its lanes do not match the outputs of the model")


def _refit(kept: Mapping[str, Any], model: Model) -> Refit:
    shares, losses, largest = (
        tuple(map(float, kept[name])) for name in ("shares", "losses", "largest")
    )
    chosen = outputs_of(model) if kept["chosen"] else None
    return Refit(shares, losses, float(kept["loss_before"]), largest, chosen)


# ---- values of JSON ------------------------------------------------------------------------------


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is not a count")
    return value


def _pair(values: Any) -> tuple[float, float]:
    one, other = values
    return float(one), float(other)


def _alike(now: Mapping[str, Any], saved: Any) -> dict[str, Any]:
    """Return saved attributes; raise ValueError if they are not of the same names and kinds."""
    if not isinstance(saved, dict) or set(saved) != set(now):
        raise ValueError("what it has seen of the rows cannot be read")
    for name, value in saved.items():
        if isinstance(now[name], dict):
            _alike(now[name], value)
            continue
        numbers = all(isinstance(one, float | int | None) for one in _flat(value))
        if not numbers or isinstance(now[name], list) != isinstance(value, list):
            raise ValueError("what it has seen of the rows cannot be read")
    return saved


def _flat(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    return [one for part in value for one in _flat(part)]


def _parameters(found: Any) -> dict[str, Any]:
    """Return parameters as `plain_parameters` got them."""
    return {name: _value(value) for name, value in found.items()}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: float(weight) for key, weight in value["pairs"]}
    return tuple(value) if isinstance(value, list) else value


def _written(model: Model) -> dict[str, Any]:
    """Return the parameters of the model's rule as its file has them."""
    table = RULES[rule].parameters if (rule := str(model.parameters.get("rule"))) in RULES else {}
    found = {}
    for name, value in model.parameters.items():
        if name not in table:
            continue
        if isinstance(value, dict) and model.classes is not None:  # class_weight
            by_text = {str(label): label for label in model.classes.tolist()}
            value = {by_text.get(key, key): weight for key, weight in value.items()}
        elif value in ("inf", "-inf", "nan"):  # JSON has no such numbers
            value = float(value)
        found[name] = value
    return {name: value for name, value in found.items() if not _is_nan(value)}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
