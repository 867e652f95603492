"""The catalogue of data sets: their files, and how they are parsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from thresher.datasets import newsgroups, svmlight, tables
from thresher.datasets.parts import Parts

Task: TypeAlias = Literal["binary", "multiclass", "regression"]
Parser: TypeAlias = Callable[[list[Path]], Parts]


@dataclass(frozen=True)
class DatasetSpec:
    """The files and the parser of a data set.

    Attributes
    ----------
    files : tuple of str
        Names without suffixes of compression; the file of training rows is the first.
    parse : callable
        Takes the paths of the files and returns the parts of the set.
    drawn : callable or None
        The same for the random split.
    task : {"binary", "multiclass", "regression"}
    needed : int
        The first `needed` files must exist.
    streams : bool
        Whether `thresher.scan` can read the files.
    """

    files: tuple[str, ...]
    parse: Parser
    drawn: Parser | None = None
    task: Task = "binary"
    needed: int = 1
    streams: bool = False


_CRX = (0, 3, 4, 5, 6, 8, 9, 11, 12)  # the categorical columns of crx

# Options of `tables.parse`, with the sizes of Langford, Li, Zhang (2008).
_TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "ad": ("ad.data", {"sizes": (2455, 824), "positive": "ad."}),
    "crx": (
        "crx.data",
        {"sizes": (526, 164), "positive": "+", "onehot": _CRX, "header": True},
    ),
    "housing": ("housing.data", {"sizes": (381, 125), "positive": None, "comma": None}),
    "krvskp": (
        "kr-vs-kp.keel.dat",
        {"sizes": (2413, 783), "positive": "won", "onehot": range(36)},
    ),
    "magic04": ("magic04.data", {"sizes": (14226, 4794), "positive": "g"}),
    "mushroom": (
        "agaricus-lepiota.data",
        {"sizes": (6079, 2045), "positive": "p", "label": 0, "onehot": range(23)},
    ),
    "spambase": ("spambase.data", {"sizes": (3445, 1156), "positive": "1"}),
    "wbc": (
        "breast-cancer-wisconsin.data",
        {"sizes": (520, 179), "positive": "4", "drop": (0,)},
    ),
    "wdbc": ("wdbc.data", {"sizes": (421, 148), "positive": "M", "label": 1, "drop": (0,)}),
    "wpbc": ("wpbc.data", {"sizes": (153, 45), "positive": "R", "label": 1, "drop": (0, 2)}),
    "zoo": ("zoo.data", {"sizes": (77, 24), "positive": None, "header": True}),
}

# Width, files that are needed, and files. Without a second file, the first is split 70/30.
_SPARSE: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "dexter": (20_000, 1, ("dexter_train.svm", "dexter_valid.svm")),
    "dexter_scaled": (7_751, 2, ("dexter_scaled_train.svm", "dexter_scaled_valid.svm")),
    "dorothea": (100_000, 2, ("dorothea_train.svm", "dorothea_valid.svm")),
    "arcene": (10_000, 2, ("arcene_train.svm", "arcene_valid.svm")),
    "gisette": (5_000, 2, ("gisette_scale", "gisette_scale.t")),
    "basehock": (4_862, 1, ("basehock.svm",)),
    "relathe": (4_322, 1, ("relathe.svm",)),
    "pcmac": (3_289, 1, ("pcmac.svm",)),
    "a9a": (123, 2, ("a9a.svm", "a9a.t.svm")),
    "agaricus": (126, 2, ("agaricus_train.svm", "agaricus_test.svm")),
    "rcv1_small": (47_236, 2, ("rcv1_small.vw", "rcv1_small_test.vw")),
    "rcv1": (47_236, 2, ("rcv1_train.binary", "rcv1_test.binary")),
    "rcv1_train": (47_236, 1, ("rcv1_train.binary",)),
    "webspam": (16_609_143, 1, ("webspam_wc_normalized_trigram.svm",)),
}

# Number of training, validation and test rows in Xie et al. (2010), and of rows in the last file.
_DRAWN = {
    "rcv1": ((3357, 6854), 677_399),  # all rows of the first file are training rows
    "webspam": ((50_000, 4999, 50_000), 350_000),
}
_PAIRS = {
    "comp rec": (4278, 1644, 2948),
    "comp sci": (4248, 1766, 2829),
    "comp talk": (3960, 1577, 2607),
    "rec talk": (3456, 1423, 2353),
    "sci rec": (3772, 1598, 2561),
    "sci talk": (3397, 1445, 2363),
}

STREAMED = {"big_ads": ("big_ads_train", "big_ads_test")}  # only for `sources`


def _specs() -> dict[str, DatasetSpec]:
    made: dict[str, DatasetSpec] = {}
    for name, (file, options) in _TABLES.items():
        task: Task = "regression" if options["positive"] is None else "binary"
        made[name] = DatasetSpec((file,), partial(tables.parse, **options), task=task)
    for name, (width, needed, files) in _SPARSE.items():
        drawn = None
        if name in _DRAWN:
            counts, of = _DRAWN[name]
            drawn = partial(svmlight.parse_drawn, width=width, counts=counts, of=of)
        parse = partial(svmlight.parse, width=width)
        made[name] = DatasetSpec(files, parse, drawn, needed=needed, streams=True)
    for pair, sizes in _PAIRS.items():
        made[pair.replace(" ", "_vs_")] = DatasetSpec(
            ("20news-bydate.tar",),
            partial(newsgroups.parse, pair=pair),
            partial(newsgroups.parse_drawn, pair=pair, counts=sizes),
        )
    made["news20"] = DatasetSpec(
        ("20news-bydate.tar",), partial(newsgroups.parse, pair=""), task="multiclass"
    )
    return made


SPECS = _specs()
