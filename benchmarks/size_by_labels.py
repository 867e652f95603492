"""How many features the stabilized rule keeps: labels chosen at random, and the earlier default.

`python benchmarks/size_by_labels.py [--sets ...] [--json out.json] [--write docs/size.md]`

- **Permuted labels**: the default is fitted to training rows whose labels are permuted. Every
  feature it keeps is a false one. With more than two classes, every class counts as a run.
- **Real labels**: the default and the earlier default (target_nnz = sqrt(rows x features / 10), at
  least min(400, features / 3)), on published test rows (orders) and on random 75/25 splits of the
  training rows (splits). The ratio of errors is the geometric mean over the sets of mean errors, to
  each of which 0.1 % is added, as some are 0.
- **Streams** (`--streams`): `partial_fit` in batches of a tenth of the training rows (25 to 500),
  with permuted and real labels; the model after the last batch.
- **Kappa at equal size**: the default on 80 % subsamples of the training rows, and the rule with
  target_nnz = the size that the default has chosen on the same subsample. The eliminations are
  almost the same, so these are too. The size itself varies between subsamples, which lowers kappa;
  the last column is the earlier default, whose size does not vary.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from default_sets import _from_folder
from folder import DATA

from thresher import StabilizedClassifier, datasets, stability_score
from thresher.health import NoSignalWarning

RULES_SETS = (
    "dexter_scaled", "dorothea", "arcene", "basehock", "relathe", "pcmac", "comp_vs_rec",
)  # fmt: skip
SETS = (
    *RULES_SETS, "dexter", "comp_vs_sci", "comp_vs_talk", "rec_vs_talk", "sci_vs_rec",
    "sci_vs_talk", "a9a", "agaricus", "rcv1_small", "crx", "krvskp", "magic04", "mushroom",
    "spambase", "wbc", "wdbc", "wpbc",
)  # fmt: skip
CLASSES = ("zoo", "news20")
ADDED = 1e-3


def rows_of(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return training and test rows, with labels -1 and 1 if there are two."""
    if name in CLASSES:
        data = datasets.load(name, DATA)
        return data.X_train, data.y_train, data.X_test, data.y_test
    rows = _from_folder(name)
    y, y_test = (np.where(labels > 0, 1, -1) for labels in (rows.y, rows.y_test))
    return sp.csr_matrix(rows.X), y, sp.csr_matrix(rows.X_test), y_test


def earlier_size(X: Any) -> int:
    """Return the number of weights that the earlier default kept."""
    counts = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    judged = np.count_nonzero(counts >= min(5, 1 + X.shape[0] // 50))
    return int(max(10.0, min(400.0, judged / 3.0), np.sqrt(X.shape[0] * judged / 10.0)))


def fitted(X: Any, y: Any, seed: int, size: int | None = None) -> Any:
    """Fit the default, or with a given size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoSignalWarning)
        return StabilizedClassifier(target_nnz=size, random_state=seed, n_jobs=2).fit(X, y)


def permuted(X: Any, y: np.ndarray, runs: int) -> dict[str, Any]:
    """Count the outputs without features when labels are permuted."""
    kept = []
    began = time.perf_counter()
    for seed in range(runs):
        labels = np.random.default_rng(900 + seed).permutation(y)
        model = fitted(X, labels, seed).model_
        kept += np.diff(model.indptr).tolist()
    seconds = (time.perf_counter() - began) / runs
    return {"kept": kept, "earlier": min(earlier_size(X), X.shape[1]), "seconds": seconds}


def streamed(X: Any, y: np.ndarray, runs: int) -> dict[str, Any]:
    """Count the features after the last batch of a stream, with permuted and with real labels."""
    rows = int(np.clip(len(y) // 10, 25, 500))
    kept: list[int] = []
    for seed in range(runs + 1):
        order = np.random.default_rng(seed).permutation(len(y))
        labels = y[order] if seed == runs else np.random.default_rng(900 + seed).permutation(y)
        clf = StabilizedClassifier(random_state=seed, n_jobs=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoSignalWarning)
            for begin in range(0, min(len(y), 5000), rows):
                part = slice(begin, begin + rows)
                clf.partial_fit(X[order[part]], labels[part], classes=[-1, 1])
        kept.append(clf.model_.nnz)
    return {"rows": rows, "kept": kept[:-1], "real": kept[-1]}


def compared(parts: list[tuple[Any, Any, Any, Any]]) -> dict[str, list[float]]:
    """Compare the default with the earlier one on several training and test rows."""
    found: dict[str, list[float]] = {
        name: [] for name in ("error", "size", "seconds", "earlier_error", "earlier_size",
                              "earlier_seconds", "same_error")
    }  # fmt: skip
    for seed, (X, y, X_test, y_test) in enumerate(parts):
        for prefix, size in (("", None), ("earlier_", earlier_size(X))):
            began = time.perf_counter()
            model = fitted(X, y, seed, size)
            found[f"{prefix}seconds"].append(time.perf_counter() - began)
            found[f"{prefix}error"].append(float(np.mean(model.predict(X_test) != y_test)))
            found[f"{prefix}size"].append(model.model_.nnz)
        same = int(found["size"][-1])
        again = fitted(X, y, seed, same) if same else None
        wrong = found["error"][-1] if again is None else np.mean(again.predict(X_test) != y_test)
        found["same_error"].append(float(wrong))
    return found


def earlier_support(X: Any, y: np.ndarray, seed: int) -> np.ndarray:
    """Return the features of the earlier default."""
    return fitted(X, y, seed, earlier_size(X)).model_.indices.astype(int)


def kappas(X: Any, y: np.ndarray, runs: int) -> dict[str, Any]:
    """Compare the stability of the default with that of the rule with the same sizes."""
    supports: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for seed in range(runs):
        chosen = np.random.default_rng(seed).permutation(len(y))[: int(0.8 * len(y))]
        own = fitted(X[chosen], y[chosen], seed).model_.indices
        given = fitted(X[chosen], y[chosen], seed, len(own)).model_.indices if len(own) else own
        supports[0].append(own.astype(int))
        supports[1].append(given.astype(int))
        supports[2].append(earlier_support(X[chosen], y[chosen], seed))
    sizes = [len(one) for one in supports[0]]
    if max(sizes) == X.shape[1] or min(sizes) == 0:
        return {"sizes": sizes, "kappa": None, "same": None, "earlier": None}
    return {
        "sizes": sizes,
        "kappa": stability_score(supports[0], X.shape[1]),
        "same": stability_score(supports[1], X.shape[1]),
        "earlier": stability_score(supports[2], X.shape[1]),
    }


def measured(name: str, runs: int, repeats: int) -> dict[str, Any]:
    """Return all results of a set."""
    X, y, X_test, y_test = rows_of(name)
    if name in CLASSES:
        return {"rows": X.shape[0], "features": X.shape[1], "permuted": permuted(X, y, 3)}
    found: dict[str, Any] = {"rows": X.shape[0], "features": X.shape[1]}
    if runs:
        found["permuted"] = permuted(X, y, runs)
    orders = [np.random.default_rng(seed).permutation(len(y)) for seed in range(repeats)]
    found["orders"] = compared([(X[o], y[o], X_test, y_test) for o in orders])
    cut = len(y) * 3 // 4
    found["splits"] = compared([(X[o[:cut]], y[o[:cut]], X[o[cut:]], y[o[cut:]]) for o in orders])
    found["kappa"] = kappas(X, y, repeats)
    return found


def ratio(results: dict[str, Any], kind: str, name: str = "earlier_error") -> float:
    """Return the geometric mean over sets of the ratio of mean errors."""
    logs = [
        np.log((np.mean(one[kind]["error"]) + ADDED) / (np.mean(one[kind][name]) + ADDED))
        for one in results.values()
        if kind in one
    ]
    return float(np.exp(np.mean(logs)))


def page(results: dict[str, Any]) -> str:
    """Return the page."""
    assert __doc__ is not None
    kept = [one for result in results.values() for one in result["permuted"]["kept"]]
    silent = sum(count == 0 for count in kept)
    lines = ["# How many features the stabilized rule keeps", "", *__doc__.splitlines()[2:], ""]
    lines += [
        "## Permuted labels", "",
        f"No feature in {silent} of {len(kept)} runs ({silent / len(kept):.1%}).", "",
        "| data | rows | features | runs | without features | most features | earlier default |"
        " seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, one in results.items():
        runs = one["permuted"]["kept"]
        zero = sum(count == 0 for count in runs)
        lines.append(
            f"| {name} | {one['rows']:,} | {one['features']:,} | {len(runs)} | {zero} | "
            f"{max(runs):,} | {one['permuted']['earlier']:,} | {one['permuted']['seconds']:.2f} |"
        )
    streams = {name: one["stream"] for name, one in results.items() if "stream" in one}
    if streams:
        counts = [count for one in streams.values() for count in one["kept"]]
        zero = sum(count == 0 for count in counts)
        lines += [
            "", "## Streams", "",
            f"Permuted labels: no feature in {zero} of {len(counts)} runs "
            f"({zero / len(counts):.1%}).", "",
            "| data | rows of a batch | runs | without features | features with real labels |",
            "|---|---|---|---|---|",
        ]  # fmt: skip
        for name, one in streams.items():
            zero = sum(count == 0 for count in one["kept"])
            lines.append(
                f"| {name} | {one['rows']} | {len(one['kept'])} | {zero} | {one['real']:,} |"
            )
    known = {name: one for name, one in results.items() if "orders" in one}
    chosen = {name: one for name, one in known.items() if name in RULES_SETS}
    for kind, title in (("orders", "Published test rows"), ("splits", "Splits of training rows")):
        lines += [
            "", f"## {title}", "",
            f"Ratio of errors to the earlier default: {ratio(known, kind):.3f} over all "
            f"{len(known)} sets, {ratio(chosen, kind):.3f} over the {len(chosen)} of",
            f"[rules.md](rules.md). To the rule with target_nnz = the chosen size: "
            f"{ratio(known, kind, 'same_error'):.3f}.", "",
            "| data | error % | features | seconds | earlier error % | features | seconds |"
            " error % with target_nnz = chosen |",
            "|---|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        for name, one in known.items():
            mean = {key: float(np.mean(values)) for key, values in one[kind].items()}
            lines.append(
                f"| {name} | {100 * mean['error']:.2f} | {mean['size']:,.0f} | "
                f"{mean['seconds']:.2f} | {100 * mean['earlier_error']:.2f} | "
                f"{mean['earlier_size']:,.0f} | {mean['earlier_seconds']:.2f} | "
                f"{100 * mean['same_error']:.2f} |"
            )
    pairs = [one["kappa"] for one in known.values() if one["kappa"]["kappa"] is not None]
    change = [pair["kappa"] - pair["same"] for pair in pairs]
    lines += [
        "", "## Kappa at equal size", "",
        f"Mean difference {np.mean(change):+.3f}, least {min(change):+.3f}, over the {len(pairs)} "
        "sets on which every subsample", "keeps some features and not all.", "",
        "| data | features | kappa | kappa with target_nnz = chosen | kappa of earlier default |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    for name, one in known.items():
        pair = one["kappa"]
        sizes = f"{min(pair['sizes']):,} to {max(pair['sizes']):,}"
        kinds = ("kappa", "same", "earlier")
        shown = ["" if pair.get(kind) is None else f"{pair[kind]:.3f}" for kind in kinds]
        lines.append(f"| {name} | {sizes} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the sets that the results do not have yet, and write the page."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=[*SETS, *CLASSES])
    parser.add_argument("--runs", type=int, default=20, help="of permuted labels")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--streams", action="store_true", help="measure streams instead")
    parser.add_argument("--again", action="store_true", help="measure only real labels, again")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    results: dict[str, Any] = {}
    if given.json and given.json.exists():
        results = json.loads(given.json.read_text())
    for name in given.sets:
        if given.streams and name not in CLASSES:
            X, y, _, _ = rows_of(name)
            results.setdefault(name, {})["stream"] = streamed(X, y, given.runs)
        elif given.again and name not in CLASSES:
            results.setdefault(name, {}).update(measured(name, 0, given.repeats))
        elif name not in results:
            results[name] = measured(name, given.runs, given.repeats)
        print(name, flush=True)
        if given.json:
            given.json.write_text(json.dumps(results))
    if given.write:
        given.write.write_text(page(results))


if __name__ == "__main__":
    main()
