"""The stabilized rule's robust variant in stages: parts learn, ranges of features judge.

As ``StabilizedClassifier(variant="robust")`` does it, and with one part the same to the last bit:

- The paths are dealt to the parts in pairs. Those of a part walk through random halves of that
  part's rows, as many passes as if there were no other rows; in the end through all of its rows.
- Where there are several parts, the weights of the features that stayed are learned in rounds, as
  many as `passes`; each goes on from the mean of all paths. A path makes as many steps as if it had
  the rows of all parts. (Learned at one go from parts of the rows, weights are worse, the more
  parts the worse; which features are chosen does not suffer.)
- Before the first stage, ranges add up how many rows have each feature, and admit those that enough
  rows of all parts have. Sizes of rows are means over the rows of all parts.
- After each stage, parts send what their paths have found of each feature, and ranges add it up in
  the order of the parts. Means are over the paths of those parts whose rows have the feature: one
  that a single part has is not diluted by the others, which could not learn it. (The intercept is
  the mean over the paths of all parts that have rows.)
- Which features stay is decided over all ranges: the driver finds the lowest score that stays, bit
  by bit, from counts of scores, and never sees the scores themselves.

Every stage starts from weights of 0, or from those that ranges send, so that a part's state is
which features are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.engine.encoding import looked_up, narrow, packed_keys, unpacked_keys
from thresher.distributed.engine.pieces import Arrays, Job, Lead, Learned, Mode, Outcome, Piece
from thresher.distributed.modes.ranking import LAST_KEY, cut
from thresher.errors import DivergenceError, ParameterError, setting
from thresher.model.evidence import Evidence
from thresher.model.history import Output
from thresher.rules import core_args
from thresher.training.class_weights import class_factors, row_weights

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Crew


class RobustStages(Mode):
    """The robust variant of the stabilized rule, spread over parts and ranges of features.

    Parameters
    ----------
    job : Job
        Of rule "stabilized". There must be a pair of paths for each part.

    Attributes
    ----------
    rounds : int
        In which the weights of the features that stayed are learned.
    """

    threaded = True

    def __init__(self, job: Job) -> None:
        self.job = job
        self.parts, self.ranges = job.rows.parts, job.ranges
        self.numbers, self.words = core_args.stabilized_parameters(
            job.params, job.seed, sum(job.counts)
        )
        paths = int(self.numbers["paths"])
        if 2 * self.parts > paths:
            raise ParameterError(
                (setting("paths"), " must be at least two for each part of the rows, which is "
                 f"{2 * self.parts}; got {paths}: raise ", setting("paths"), ", or cut the rows "
                 f"into at most {paths // 2} ", setting("parts")),
                parameter="paths",
                value=paths,
            )  # fmt: skip
        self.rounds = 1 if self.parts == 1 else int(job.params["passes"])
        if not isinstance(job.params["class_weight"], Mapping | None):
            raise ParameterError(
                (setting("class_weight"), " must be a dict or None with ",
                 setting("mode", "stages"), f"; got {job.params['class_weight']!r}"),
                parameter="class_weight",
                value=job.params["class_weight"],
            )  # fmt: skip

    def paths(self, part: int) -> tuple[int, int]:
        """Return the first path of a part, and how many it has: whole pairs, about as many each."""
        pairs = int(self.numbers["paths"]) // 2
        first, end = pairs * part // self.parts, pairs * (part + 1) // self.parts
        return 2 * first, 2 * (end - first)

    def part(self, number: int, threads: int, shared: dict[str, Any]) -> Piece:
        """Make a part as it is before the first step."""
        return _Part(self, number, threads)

    def range(self, number: int, shared: dict[str, Any]) -> Piece:
        """Make a range as it is before the first step."""
        return _Range(self, number)

    def lead(self) -> Lead:
        """Make the driver's part, as it is before the first stage."""
        return _Lead(self)

    # Features are dealt to the ranges one by one, and sent by their numbers within the range.

    def dealt(self, keys: NDArray[np.uint64], columns: Mapping[str, NDArray[Any]]) -> list[Arrays]:
        """Return what each range is sent of features, given in increasing order."""
        ranges = np.uint64(self.ranges)
        owners = keys % ranges
        sent = []
        for number in range(self.ranges):
            mine = np.flatnonzero(owners == number)
            bundle = packed_keys(keys[mine] // ranges)
            sent.append(bundle | {name: column[mine] for name, column in columns.items()})
        return sent

    def packed(self, keys: NDArray[np.uint64]) -> Arrays:
        """Return features of one range as they are sent."""
        return packed_keys(keys // np.uint64(self.ranges))

    def unpacked(self, number: int, arrays: Arrays) -> NDArray[np.uint64]:
        """Return features as a range of this number was sent them, or has sent them."""
        return unpacked_keys(arrays) * np.uint64(self.ranges) + np.uint64(number)


class _Part(Piece):
    """Rows, and the paths that walk through them."""

    def __init__(self, mode: RobustStages, number: int, threads: int) -> None:
        self.mode, self.number, self.threads = mode, number, threads
        self._core: _core.RobustPart | None = None
        self._left: NDArray[np.uint64] | None = None  # of a checkpoint, while rows are not read

    def step(self, message: dict[str, Any], received: Sequence[Arrays]) -> Outcome:
        if message["do"] == "count":
            return self._count()
        core = self._rows()
        keys = np.concatenate([self.mode.unpacked(r, sent) for r, sent in enumerate(received)])
        order = np.argsort(keys)
        keys, start = keys[order], np.zeros(0)
        if message["round"] > 0:
            weights = np.concatenate([sent["weights"] for sent in received])
            start = looked_up(core.features(), keys, weights[order].astype(np.float64))
        elif message["stage"] == 1:
            core.retain(keys)
        else:
            core.drop(keys)
        try:
            sums = self._walk(core, message, start)
        except DivergenceError as error:
            raise DivergenceError(f"part {self.number}: {error}") from None
        told = {"rows": sums.rows, "loss": sums.loss, "weight": sums.weight, "bias": sums.bias}
        z, w, plus, minus, updates = sums.arrays()
        found = np.flatnonzero((updates > 0) | (w != 0))
        columns: Arrays = {"w": w[found], "updates": narrow(updates[found])}
        if message["do"] == "halves":
            columns |= {"z": z[found], "plus": narrow(plus[found]), "minus": narrow(minus[found])}
        return Outcome(told, self.mode.dealt(core.features()[found], columns))

    def _walk(
        self, core: _core.RobustPart, message: dict[str, Any], start: NDArray[np.float64]
    ) -> _core.PathSums:
        about = message["stage"], message["norm"], message["weight"]
        if message["do"] == "halves":
            return core.halves(*about, self.threads)
        steps = max(int(self.mode.job.params["passes"]) * message["rows"], core.refit_steps)
        passes = -(-steps // (max(core.rows, 1) * self.mode.rounds))
        return core.whole(*about, passes, start, message["bias"], self.threads)

    def _count(self) -> Outcome:
        core, (keys, rows, documents, squares) = self._read()
        self._core = core
        told = {
            "rows": core.rows,
            "norms": core.norms,
            "weights": core.weights,
            "paths": self.mode.paths(self.number)[1] if core.rows else 0,
        }
        counts = {"rows": narrow(rows), "documents": narrow(documents), "squares": squares}
        return Outcome(told, self.mode.dealt(keys, counts))

    def _rows(self) -> _core.RobustPart:
        if self._core is None:
            assert self._left is not None
            self._core, _ = self._read()
            self._core.retain(self._left)
            self._left = None
        return self._core

    def _read(self) -> tuple[_core.RobustPart, tuple[NDArray[Any], ...]]:
        """Read the rows, and count what they have."""
        mode, job = self.mode, self.mode.job
        core = _core.make_robust_part(
            job.params["dtype"], job.width, mode.numbers, mode.words, *mode.paths(self.number)
        )
        # As a matrix has them: numbers are rounded to `dtype` once, when rows are taken.
        for block in job.rows.source(self.number).blocks(dtype="float64"):
            targets = job.labels.targets(block)
            factors = class_factors(job.params["class_weight"], job.labels, "")
            weights = row_weights(block, targets, factors)
            batch = block.batch
            batch.set_targets(targets[job.output], weights)
            try:
                core.add(batch)
            except _core.DataError as error:
                raise block.located(error) from None
        return core, core.end()

    def state(self) -> Arrays:
        left = self._left if self._core is None else self._core.features()
        assert left is not None
        return packed_keys(left)

    def restore(self, state: Arrays) -> None:
        self._core, self._left = None, unpacked_keys(state)


class _Range(Piece):
    """Features, and what is known of each."""

    def __init__(self, mode: RobustStages, number: int) -> None:
        self.mode, self.number = mode, number
        self._core = _core.RobustRange()

    def step(self, message: dict[str, Any], received: Sequence[Arrays]) -> Outcome:
        core, numbers = self._core, self.mode.numbers
        if message["do"] == "purge":
            gone = core.purge(message["stage"], message["rank"], message["last"])
            return Outcome({"left": core.left}, [self.mode.packed(gone)])
        for part, sent in enumerate(received):
            keys = self.mode.unpacked(self.number, sent)
            if message["do"] == "admit":
                counts = sent["rows"].astype(np.int64), sent["documents"].astype(np.int64)
                core.count(keys, *counts, sent["squares"], self.mode.paths(part)[1])
                continue
            updates = sent["updates"].astype(np.int64)
            if message["do"] == "judge":
                signs = sent["plus"].astype(np.uint32), sent["minus"].astype(np.uint32)
                core.add(keys, sent["z"], sent["w"], *signs, updates)
            else:
                core.add_weights(keys, sent["w"], updates)
        if message["do"] == "admit":
            admitted = core.admit(numbers["min_updates"])
            return Outcome({"left": core.left}, [self.mode.packed(admitted)])
        if message["do"] == "judge":
            return Outcome({"may_stay": core.judge(message["rows"], numbers["keep"])})
        core.set_weights()
        keys, weights = core.weights()
        if message["last"]:
            return Outcome({"nonzeros": len(keys)})
        weights = weights.astype(self.mode.job.params["dtype"])  # that of the paths to come
        return Outcome({"nonzeros": len(keys)}, [self.mode.packed(keys) | {"weights": weights}])

    def answer(self, question: dict[str, Any]) -> Any:
        if question["ask"] == "result":
            return self._core.weights(), self._core.findings()
        return self._core.histogram(
            question["tied"], question["prefix"], question["shift"], question["bits"]
        )

    def state(self) -> Arrays:
        state: Arrays = self._core.state()
        keys = {f"keys_{name}": array for name, array in packed_keys(state.pop("keys")).items()}
        state["purged"] = state["purged"] + 1
        state["admitted"] = np.packbits(state["admitted"])
        if not state["weight"].any():
            state["weight"] = np.zeros(0)
        whole = ("rows", "documents", "updates", "purged", "stages", "paths")
        return keys | state | {name: narrow(state[name]) for name in whole}

    def restore(self, state: Arrays) -> None:
        known = dict(state)
        keys = unpacked_keys({name: known.pop(f"keys_{name}") for name in ("first", "gaps")})
        for name in ("rows", "documents", "updates", "purged", "stages"):
            known[name] = known[name].astype(np.int64)
        known["purged"] -= 1
        known["paths"] = known["paths"].astype(np.uint32)
        known["admitted"] = np.unpackbits(known["admitted"], count=len(keys))
        if not len(known["weight"]):
            known["weight"] = np.zeros(len(known["W"]))
        self._core.restore(known | {"keys": keys})


class _Lead(Lead):
    """What is decided from the counts of all parts and ranges."""

    def __init__(self, mode: RobustStages) -> None:
        self.mode = mode
        self._stage = 0  # the last
        self._round = 0  # of the refit, as many as are done
        self._rows, self._paths = 0, 0  # of all parts; paths of parts that have rows
        self._norm, self._weight = 0.0, 0.0  # means over all rows
        self._left, self._target = 0, 0
        self._bias = 0.0

    def stage(self, crew: Crew) -> dict[str, Any]:
        if self._stage == 0 and not self._begin(crew):
            self.done = True
            return {"rows": 0, "loss": None, "nonzeros": 0}
        refits = self._stage > 0 and self._left <= self._target
        self._stage += 1
        told = crew.parts(
            {
                "do": "whole" if refits else "halves",
                "stage": self._stage,
                "round": self._round,
                "rows": self._rows,
                "norm": self._norm,
                "weight": self._weight,
                "bias": self._bias,
            }
        )
        if refits:
            self._round += 1
            self.done = self._round == self.mode.rounds
            found = crew.ranges({"do": "settle", "last": self.done})
            nonzeros = sum(facts["nonzeros"] for facts in found)
            self._bias = _total(told, "bias") / self._paths
        else:
            self._purge(crew)
            nonzeros = self._left
        weight = _total(told, "weight")
        return {
            "rows": sum(facts["rows"] for facts in told),
            "loss": _total(told, "loss") / weight if weight > 0 else 0.0,
            "nonzeros": nonzeros,
        }

    def _begin(self, crew: Crew) -> bool:
        """Let all count what there is; tell whether there is anything."""
        told = crew.parts({"do": "count"})
        self._left = sum(facts["left"] for facts in crew.ranges({"do": "admit"}))
        self._rows = sum(facts["rows"] for facts in told)
        if self._rows == 0:
            return False
        self._paths = sum(facts["paths"] for facts in told)
        self._norm = _total(told, "norms") / self._rows
        self._weight = _total(told, "weights") / self._rows
        asked = self.mode.numbers["target"]
        self._target = _core.robust_target(asked, float(self._rows), float(self._left))
        return True

    def _purge(self, crew: Crew) -> None:
        """Let the features of highest score stay, of equal ones the first."""
        told = crew.ranges({"do": "judge", "rows": float(self._rows)})
        rejection = self.mode.numbers["rejection"]
        size = _core.robust_size_after(self._left, self._target, rejection)
        rank, last = 1, LAST_KEY  # all that may
        if sum(facts["may_stay"] for facts in told) > size:
            rank, last = cut(crew, size)
        purged = crew.ranges({"do": "purge", "stage": self._stage, "rank": rank, "last": last})
        self._left = sum(facts["left"] for facts in purged)

    def state(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "mode"}

    def restore(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def result(self, crew: Crew) -> Learned:
        weights, findings = zip(*crew.ask_ranges({"ask": "result"}), strict=True)
        keys, values = _sorted(weights)
        features, probability, updates, purged, documents = _sorted(findings)
        evidence = Evidence(
            indptr=np.array([0, len(features)], np.int64),
            features=features,
            probability=probability,
            updates=updates,
            purged=purged,
            documents=documents,
        )
        return Learned([Output(keys, values, self._bias)], evidence)


def _total(told: Sequence[dict[str, Any]], name: str) -> float:
    """Return a plain sum, in order: what `sum` does depends on the version of Python."""
    total = 0.0
    for facts in told:
        total += facts[name]
    return total


def _sorted(found: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Return arrays of several ranges as one, by the features that are the first of them."""
    joined = [np.concatenate(arrays) for arrays in zip(*found, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return [array[order] for array in joined]
