"""Decides which features are selected, from the sums of evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.features import key_of, space_of
from thresher.data.matrix_source import MatrixSource
from thresher.discovery.correlated import correlated_columns
from thresher.discovery.error_rates import ErrorRates
from thresher.discovery.evidence import Evidence
from thresher.discovery.feature_groups import GroupEvidence, groups_of
from thresher.discovery.findings import Finding, near_names
from thresher.discovery.joint_fit import MOST, JointFit, gathered
from thresher.discovery.near_copies import SHARE, NearCopies
from thresher.discovery.row_checks import Check
from thresher.discovery.sums import EvidenceSums
from thresher.errors import ParameterError
from thresher.model.model import Model, Output
from thresher.printable import printable
from thresher.sums import dot

if TYPE_CHECKING:
    from thresher.data.source import Source
    from thresher.training.observer import Observer

_WIDEST = 1 << 27  # features for which arrays of all features are made
NAMED = 1000  # strongest features of a source whose names are looked up


@dataclass(frozen=True)
class Options:
    """How features are selected: see `FeatureDiscovery`.

    Attributes
    ----------
    fdr : float
    expected_false : float or None
    joint, refit : bool
    groups : array, "namespace" or None
    """

    fdr: float = 0.1
    expected_false: float | None = None
    joint: bool = False
    refit: bool = False
    groups: Any = None


class Decision:
    """The selected features, their evidence and the checks.

    Parameters
    ----------
    evidence : Evidence
    options : Options

    Attributes
    ----------
    keys : array of uint64
        The features that occurred; the other arrays have their order.
    rows, z : array of shape (features,)
    outputs : array of int of shape (features,)
        The output whose evidence is `z`.
    effects : array of shape (features,)
        S / sum h^2 x^2 v: about the weight of the feature if it is added to the model alone; in a
        regression, in standard deviations of the targets.
    plan : DiscoveryPlan
    rates : ErrorRates
        Of the features, or of their groups.
    chosen : array of int
        Positions of the selected features in `keys`.
    joint : JointFit or None
        One fit of all selected features, in the order of `chosen`.
    model : Model or None
    names : dict
        Names of features of a source.
    """

    def __init__(self, evidence: Evidence, options: Options) -> None:
        self.plan, width = evidence.plan, evidence.width
        plan = self.plan
        self.options, self.width, self.redraws = options, width, plan.redraws
        self.labels, self.classes, self.task = evidence.labels, evidence.labels.classes, plan.task
        self.form = "joint" if options.joint else plan.form
        sums = evidence.sums
        self.keys, self.rows = sums[0].keys, sums[0].rows
        z = np.stack([each.z() for each in sums])
        self.outputs = np.abs(z).argmax(axis=0)
        self.z = z[self.outputs, np.arange(z.shape[1])]
        self.effects = self._effects(sums, evidence.residual_variance)
        redrawn = [each.redrawn_z() for each in sums]
        null = redrawn[0] if len(redrawn) == 1 else np.max(redrawn, axis=0)
        self.feature_rates = ErrorRates.of(np.abs(self.z), null, self.rows)
        self.joint: JointFit | None = None
        self.model: Model | None = None
        self.names: dict[int, str] = {}
        self.first = 0  # number of the first feature in the files
        self.named = False  # whether keys are hashes of names
        self.numbered = width <= _WIDEST
        self.groups: GroupEvidence | None = None
        self._null = null if options.groups is not None else None
        if options.groups is not None and not isinstance(options.groups, str):
            self._group(groups_of(options.groups, width)[self.keys.astype(np.intp)])
        self.chosen = self._choose()
        self._copies = NearCopies.of(sums, self.chosen, np.abs(self.z))
        self._sums = sums if isinstance(options.groups, str) else []
        self.checks = [*evidence.checks, correlated_columns(None, []), self._copies_check()]
        self._known = evidence.names

    # ---- selection -----------------------------------------------------------------------------

    @property
    def rates(self) -> ErrorRates:
        """Error rates of the unit that is selected: features, or groups."""
        return self.feature_rates if self.groups is None else self.groups.rates

    def _group(self, groups: NDArray[Any]) -> None:
        assert self._null is not None
        self.groups = GroupEvidence.of(groups, self.z, self._null, self.rows)
        self._null = None

    def _choose(self) -> NDArray[np.intp]:
        rates, options = self.rates, self.options
        if options.expected_false is not None:
            found = rates.by_number(options.expected_false)
        else:
            found = rates.by_fdr(options.fdr)
        most = rates.expected_false[found].max() if len(found) else 0.0
        self.expected_false = float(most)
        if self.groups is None:
            return found
        self.selected_groups = self.groups.labels[found]
        return np.flatnonzero(np.isin(self.groups.members, found))

    @property
    def selected_keys(self) -> NDArray[np.uint64]:
        """The keys of the selected features."""
        return self.keys[self.chosen]

    @property
    def selected(self) -> NDArray[Any]:
        """The selected features as column numbers; as keys, if features have names."""
        return self.selected_keys.astype(np.int64) if self.numbered else self.selected_keys

    def whole(self, name: str, missing: float) -> NDArray[np.float64]:
        """Return "z", "qvalues" or "pvalues" of all features."""
        found = self.z if name == "z" else getattr(self.rates, name)
        if self.groups is not None and name != "z":
            found = found[self.groups.members]
        if not self.numbered:
            return np.asarray(found)
        values = np.full(self.width, missing)
        values[self.keys.astype(np.intp)] = found
        return values

    # ---- further readings ----------------------------------------------------------------------

    def conclude(self, source: Source | MatrixSource, observer: Observer) -> None:
        """Look up names, fit the selected features together, and drop stand-ins.

        Parameters
        ----------
        source : Source or MatrixSource
        observer : Observer
        """
        self.first, self.named = source.first, source.named
        if isinstance(self.options.groups, str):
            self._group_by_namespace(source)
        if (self.options.joint or self.options.refit) and source.rereadable:
            self._fit_jointly(source, observer)
        if source.named:
            self._look_up_names(source)
            if self.model is not None:
                object.__setattr__(self.model, "names", self._names_of_model())
        if isinstance(source, MatrixSource):
            groups = None if self.groups is None else self.options.groups
            self.checks[-2] = correlated_columns(source, self.selected, groups)
        self.checks[-1] = self._copies_check()

    def _fit_jointly(self, source: Source | MatrixSource, observer: Observer) -> None:
        """Fit the selected features together, drop stand-ins, and make the model."""
        if len(self.chosen) > MOST:
            observer.warn(
                f"FeatureDiscovery: {len(self.chosen):,} features are selected; at most {MOST:,} "
                f"can be fitted together, so there is no model, and stand-ins are not dropped"
            )
            return
        X, y, h = gathered(source, self.selected_keys, self.labels)
        classifies = self.task == "classification"
        if self.options.joint:
            self.joint, stays = JointFit.pruned(X, y, h, classifies=classifies)
            self.chosen = self.chosen[stays]
        else:
            self.joint = JointFit.of(X, y, h, classifies=classifies)
        if self.options.refit:
            self.model = self._model(self.joint, source)

    def _group_by_namespace(self, source: Source | MatrixSource) -> None:
        names = (
            source.names(self.keys.tolist())
            if source.rereadable
            else {key: name.decode(errors="replace") for key, name in self._known.items()}
        )
        spaces = [space_of(names.get(key, ""), source.kinds) for key in self.keys.tolist()]
        self._group(np.array(spaces))
        self.chosen = self._choose()
        self._copies = NearCopies.of(self._sums, self.chosen, np.abs(self.z))
        self._sums = []

    def _look_up_names(self, source: Source | MatrixSource) -> None:
        strongest = np.argsort(-np.abs(self.z), kind="stable")[:NAMED]
        wanted = self.keys[np.union1d(self.chosen, strongest)].tolist()
        if source.rereadable:
            self.names = source.names(wanted)
            return
        known = self._known
        self.names = {key: known[key].decode(errors="replace") for key in wanted if key in known}

    def _model(self, fit: JointFit, source: Any) -> Model:
        keys = self.selected_keys
        offsets = getattr(source, "offsets", None)  # of centred columns
        means = np.zeros(len(keys)) if offsets is None else offsets[keys.astype(np.intp)]
        fits = zip(fit.weights, fit.intercepts, strict=True)
        outputs = [
            Output(keys[w != 0], w[w != 0], float(intercept) - dot(w, means))
            for w, intercept in fits
        ]
        return Model.of(
            outputs,
            n_features=self.width,
            classes=self.classes,
            loss="logistic" if self.task == "classification" else "squared",
            parameters={"rule": "discovery", **source.described()},
        )

    def _names_of_model(self) -> dict[int, str]:
        return {key: self.names[key] for key in self.selected_keys.tolist() if key in self.names}

    # ---- checks --------------------------------------------------------------------------------

    def _effects(self, sums: list[EvidenceSums], variance: float) -> NDArray[np.float64]:
        places = np.arange(len(self.keys))
        S, predicted = (
            np.stack([getattr(each, name) for each in sums])[self.outputs, places]
            for name in ("S", "predicted")
        )
        flat = np.zeros(len(S))
        return np.asarray(np.divide(variance * S, predicted, out=flat, where=predicted > 0))

    def _copies_check(self) -> Check:
        if not self._copies.enough(self.chosen):
            message = f"not checked: {self.redraws} redraws are too few to tell them from chance"
            return Check("near-copies", 0.0, True, message)
        share, pair = self._copies.share(self.chosen)
        fine = share <= SHARE
        message = f"{share:.0%} of the selected features are near-copies of another one"
        if not fine:
            keys = self.keys[pair].tolist()
            names = [str(self.names.get(key, key + self.first)) for key in keys]
            message += (
                f" (for example {' and '.join(names)}). Evidence cannot tell which of them has "
                f"the effect"
            )
            if not self.options.joint:
                message += "; the form joint drops most stand-ins"
        return Check("near-copies", share, fine, message)

    # ---- output --------------------------------------------------------------------------------

    def findings(self, n: int | None, columns: NDArray[Any] | None) -> list[Finding]:
        """Return the evidence of the strongest features; by default of the selected ones."""
        at = self.chosen if n is None else np.arange(len(self.keys))
        order = at[np.argsort(-np.abs(self.z[at]), kind="stable")]
        return [self._finding(int(i), columns) for i in order[:n]]

    def why(self, feature: str | int, columns: NDArray[Any] | None) -> str:
        """Return the evidence of a feature in words."""
        key = self._key(feature, columns)
        at = int(np.searchsorted(self.keys, np.uint64(key)))
        if at == len(self.keys) or int(self.keys[at]) != key:
            near = near_names(str(feature), self.names.values()) if self.named else []
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            count = f"{len(self.keys):,} features occur."
            return printable(f"{feature}: no row has a nonzero value of it.{meant or ' ' + count}")
        found = self._finding(at, columns)
        if isinstance(feature, str):
            found = replace(found, feature=feature)
        if self.groups is None:
            return found.sentence(len(self.keys), self.redraws)
        own, label = self.feature_rates, self.groups.labels[self.groups.members[at]]
        of_group = found.q
        found = replace(
            found, q=float(own.qvalues[at]), p=float(own.pvalues[at]), alike=int(own.alike[at]),
            expected_false=float(own.expected_false[at]),
        )  # fmt: skip
        about = "is selected" if found.selected else "is not selected"
        sentence = found.sentence(len(self.keys), self.redraws)
        return (
            f"{sentence}\nThese numbers are of this feature alone, but groups are selected as a "
            f"whole.\nIts group {printable(label)} {about}; q of the group is {of_group:.2g}."
        )

    def _key(self, feature: str | int, columns: NDArray[Any] | None) -> int:
        if isinstance(feature, str):
            names = {name: key for key, name in self.names.items()}
            if columns is not None:
                names = {str(name): number for number, name in enumerate(columns)}
            if feature not in names and self.named and columns is None:
                mask = self.width - 1 if self.numbered else 2**64 - 1  # of --bits
                spellings = feature, feature.replace("=", "^", 1)
                keys = [key_of(spelling.encode()) & mask for spelling in spellings]
                return keys[1] if np.isin(keys[1], self.keys) else keys[0]
            if feature not in names:
                near = near_names(feature, names)
                raise ParameterError(
                    f"no feature is called {feature!r}"
                    + (f"; did you mean {' or '.join(near)}?" if near else ""),
                    owner="FeatureDiscovery",
                )
            return names[feature]
        if not 0 <= feature < self.width:
            raise ParameterError(
                f"there is no feature {feature}; features are 0 to {self.width - 1}",
                owner="FeatureDiscovery",
            )
        return int(feature)

    def _finding(self, at: int, columns: NDArray[Any] | None) -> Finding:
        key, rates = int(self.keys[at]), self.rates
        unit = at if self.groups is None else int(self.groups.members[at])
        output = int(self.outputs[at])
        label = None
        if self.classes is not None:
            label = self.classes[output] if len(self.classes) > 2 else self.classes[1]
        name: str | int = self.names.get(key, key)
        if columns is not None:
            name = str(columns[key])
        place = int(np.searchsorted(self.chosen, at))
        selected = place < len(self.chosen) and int(self.chosen[place]) == at
        joint = self.joint if selected else None
        return Finding(
            feature=name,
            number=key,
            direction="raises" if self.z[at] > 0 else "lowers",
            label=label,
            rows=int(self.rows[at]),
            z=float(self.z[at]),
            q=float(rates.qvalues[unit]),
            p=float(rates.pvalues[unit]),
            expected_false=float(rates.expected_false[unit]),
            alike=int(rates.alike[unit]),
            selected=selected,
            weight=None if joint is None else float(joint.weights[output, place]),
            wald=None if joint is None else float(joint.wald[output, place]),
            group=None if self.groups is None else self.groups.labels[unit],
        )
