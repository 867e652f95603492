"""Make the data of the interactive page, and one file to open without the site.

    python docs/interactive/make.py newsgroups ARCHIVE   # static/interactive/newsgroups.js
    python docs/interactive/make.py grid                 # static/interactive/grid.js
    python docs/interactive/make.py page FILE            # the page with all it needs, in one file

ARCHIVE is `20news-bydate.tar.gz` of http://qwone.com/~jason/20Newsgroups/, also with another
compression. `grid` takes some minutes: it fits the stabilized rule ten times at each setting.
"""

from __future__ import annotations

import html
import json
import re
import sys
import tarfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

FOLDER = Path(__file__).resolve().parent
STATIC = FOLDER / "static" / "interactive"
GROUPS = ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware")
TRAIN = 1000  # rows; the slider of the period has divisors of this number only
FEWEST = 6  # a word is in at least this many training rows

# --- messages to rows ----------------------------------------------------------------------------

_QUOTED = re.compile(r"^\s*(>|\||In article|.*(writes|wrote):)")
_SIGNATURE = re.compile(r"^\s*(--+|__+|==+|\*\*+)", re.MULTILINE)


def newsgroups(archive: Path) -> dict[str, Any]:
    """Return words, and rows of word numbers with their labels: 1,000 to learn, all test rows."""
    messages: dict[str, list[tuple[str, str, str]]] = {"train": [], "test": []}
    with tarfile.open(archive) as files:
        for member in files:
            parts = Path(member.name).parts
            if member.isfile() and parts[-2] in GROUPS:
                part = "train" if parts[-3].endswith("train") else "test"
                stream = files.extractfile(member)
                assert stream is not None
                text = stream.read().decode("latin-1")
                messages[part].append((member.name, parts[-2], text))
    drawn = np.random.default_rng(0).permutation(len(messages["train"]))[:TRAIN]
    train = [sorted(messages["train"])[number] for number in drawn]
    test = sorted(messages["test"])
    counts = Counter(word for _, _, text in train for word in words_of(text))
    words = sorted(word for word, rows in counts.items() if rows >= FEWEST)
    number = {word: j for j, word in enumerate(words)}
    found: dict[str, Any] = {"words": words}
    for name, part in (("train", train), ("test", test)):
        rows = [sorted(number[w] for w in words_of(text) if w in number) for _, _, text in part]
        found[name] = {
            "labels": "".join(str(GROUPS.index(group)) for _, group, _ in part),
            # the first number of a row, then differences
            "rows": [np.diff(row, prepend=0).tolist() if row else [] for row in rows],
        }
    return found


def words_of(text: str) -> set[str]:
    """Return the words of the subject and the text, without quotes, signatures and addresses."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    head, _, body = text.partition("\n\n")
    lines = [line[len("Subject:") :] for line in head.splitlines() if line.startswith("Subject:")]
    written = _SIGNATURE.split(body)[0].splitlines()
    lines += [line for line in written if not _QUOTED.match(line)]
    plain = re.sub(r"\S+@\S+", " ", "\n".join(lines).lower())
    return set(re.findall(r"[a-z]{3,}", plain)) - ENGLISH_STOP_WORDS


def rows_of(part: dict[str, Any], width: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return the matrix and the labels; a word of a row of n words has the value 1 / sqrt(n)."""
    lengths = [len(row) for row in part["rows"]]
    indices = np.concatenate([np.cumsum(row) for row in part["rows"]]).astype(np.int64)
    values = np.repeat([1 / np.sqrt(max(n, 1)) for n in lengths], lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.csr_matrix((values, indices, starts), shape=(len(lengths), width))
    return X, np.array([int(label) for label in part["labels"]])


# --- the stabilized rule on a grid ---------------------------------------------------------------

RUNS = 10
ROWS_OF_A_RUN = 800  # of the 1,000: each run learns from other rows, in another order
SHOWN = 24  # words of a setting
SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)
GRAVITIES = [float(f"{10 ** (k / 5):.2g}") for k in range(-20, -9)]  # 0.0001 to 0.01


def settings() -> dict[str, list[dict[str, Any]]]:
    """Return the parameters of every point, by the name of the curve."""
    paper = [
        {"rejection": rejection, "annealing": annealing, "keep": keep}
        for rejection in (0.1, 0.3, 0.5, 0.7, 0.9)
        for annealing in (-5.0, 0.0, 5.0)
        for keep in (0.5, 0.7, 0.9)
    ]
    robust = [
        {"target_nnz": size, "rejection": rejection}
        for size in (*SIZES, None)
        for rejection in (0.2, 0.5, 0.8)
    ]
    truncated = [{"gravity": gravity} for gravity in GRAVITIES]
    return {"robust": robust, "paper": paper, "truncated": truncated}


def estimator(curve: str, params: dict[str, Any], seed: int) -> Any:
    """Return the estimator of a point."""
    from thresher import StabilizedClassifier, TruncatedGradientClassifier

    if curve == "truncated":  # as in the first part of the page
        return TruncatedGradientClassifier(
            **params, eta0=1.0, decay=1.0, period=10, passes=10, fit_intercept=False,
            random_state=seed,
        )  # fmt: skip
    return StabilizedClassifier(**params, variant=curve, random_state=seed)


def grid(data: dict[str, Any]) -> dict[str, Any]:
    """Return what each setting gives: errors, sizes, agreement of runs, words."""
    width = len(data["words"])
    X, y = rows_of(data["train"], width)
    X_test, y_test = rows_of(data["test"], width)
    found: dict[str, Any] = {}
    for curve, points in settings().items():
        found[curve] = []
        for params in points:
            fits = []
            for run in range(RUNS):
                mine = np.random.default_rng(run).permutation(TRAIN)[:ROWS_OF_A_RUN]
                fits.append(estimator(curve, params, run).fit(X[mine], y[mine]))
            found[curve].append({**params, **point(fits, X_test, y_test)})
            print(curve, params, {k: v for k, v in found[curve][-1].items() if k == "error"})
    return found


def point(fits: list[Any], X_test: sp.csr_matrix, y_test: np.ndarray) -> dict[str, Any]:
    """Return the numbers of one setting, from its runs."""
    from thresher import stability_score

    width = X_test.shape[1]
    kept = [fit.model_.indices for fit in fits]
    weights = np.mean([fit.coef_.ravel() for fit in fits], axis=0)
    share = np.mean([np.isin(np.arange(width), indices) for indices in kept], axis=0)
    best = np.argsort(-np.abs(weights), kind="stable")[:SHOWN]
    with warnings.catch_warnings():  # kappa of empty or full sets is not defined
        warnings.simplefilter("ignore")
        kappa = stability_score(kept, n_features=width)
    shown = {
        "nonzeros": [len(indices) for indices in kept],
        "error": [round(100 * (1 - fit.score(X_test, y_test)), 2) for fit in fits],
        "kappa": None if np.isnan(kappa) else round(kappa, 3),
        "words": [[int(j), round(weights[j], 4), round(share[j], 2)] for j in best if weights[j]],
    }
    if hasattr(fits[0].model_, "why") and fits[0].model_.why(0).selection_probability is not None:
        for word in shown["words"]:
            chances = [fit.model_.why(word[0]).selection_probability for fit in fits]
            word.append(round(float(np.mean(chances)), 2))
        shown["left"] = left_after(fits[0].history_)
    return shown


def left_after(history: list[Any]) -> list[list[int]]:
    """Return steps and the words left, where their number changed and at the end."""
    left = [[record.examples, record.nonzeros] for record in history]
    changed = [now for now, before in zip(left[1:], left, strict=False) if now[1] != before[1]]
    return [left[0], *changed, left[-1]]


# --- files ---------------------------------------------------------------------------------------


def written(name: str, value: Any) -> None:
    """Write a value as a script, which a page may load from a file, unlike JSON."""
    lists = json.dumps(value, separators=(",", ":"), default=float)
    short = re.sub(r"(.{80}[^,]*),", r"\1,\n", lists.replace("],[", "],\n["))
    (STATIC / f"{name}.js").write_text(f"globalThis.thresher_{name} =\n{short};\n")


def loaded(name: str) -> Any:
    """Return the value that a script has."""
    return json.loads((STATIC / f"{name}.js").read_text().partition("=")[2].rstrip(" ;\n"))


_RAW = re.compile(r"^```\{raw\} html\n:file: (\S+)\n```$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!http)[^)]+\)")


def page() -> str:
    """Return index.md as one HTML file; links to other pages of the site are plain text."""
    from markdown_it import MarkdownIt

    text = (FOLDER / "index.md").read_text().split("---\n", 2)[2]  # without the settings on top
    source = _LINK.sub(r"\1", text)
    pieces = _RAW.split(source)
    mark = MarkdownIt()
    body = "".join(
        mark.render(piece) if number % 2 == 0 else (FOLDER / piece).read_text()
        for number, piece in enumerate(pieces)
    )
    body = re.sub(
        r'<link rel="stylesheet" href="\.\./_static/interactive/(\S+)">',
        lambda found: f"<style>\n{(STATIC / found[1]).read_text()}</style>",
        body,
    )
    body = re.sub(
        r'<script src="\.\./_static/interactive/(\S+)"></script>',
        lambda found: f"<script>\n{(STATIC / found[1]).read_text()}</script>",
        body,
    )
    title = html.escape(source.partition("# ")[2].partition("\n")[0])
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n</head>\n'
        f'<body class="thresher-alone">\n<main>\n{body}</main>\n</body>\n</html>\n'
    )


def main() -> None:
    """Do what the arguments say."""
    commands: dict[str, Callable[..., None]] = {
        "newsgroups": lambda archive: written("newsgroups", newsgroups(Path(archive))),
        "grid": lambda: written("grid", grid(loaded("newsgroups"))),
        "page": lambda file: Path(file).write_text(page()) and None,
    }
    commands[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
