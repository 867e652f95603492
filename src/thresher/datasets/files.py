"""Finds the files of data sets, plain or compressed, and checks them by known checksums."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import TypeAlias

from thresher.data import open_streams
from thresher.errors import ParameterError

Folder: TypeAlias = str | os.PathLike[str] | None

VARIABLE = "THRESHER_DATA"
_SUBFOLDERS = ("", "uci")
_SUFFIXES = ("", ".xz", ".bz2", ".gz")

# sha256 of the files, decompressed
KNOWN = {
    "20news-bydate.tar": "38c2401fee98353a801cb19cefdd1b37d3a1b34cc35b8b260f9fe7ab09c1862d",
    "a9a.svm": "45232e1b205e4d18bf3a71b12320c64237fef85d31e8b43e5ba7ec1082f8bec4",
    "a9a.t.svm": "0c3135eb9b9d83a4fa007d6e1a3b719f029db78884dafd5a46a4d7eeb4c2b018",
    "agaricus_test.svm": "765db79391141953d890ce197fe828a621d6487fbba4de5e4d2217bd140371c0",
    "agaricus_train.svm": "915c2def06e9b44a306ad097fe8b6652c7c477d9c1e605bd2130ad20a70a8ad6",
    "arcene_train.svm": "de2a96d72a36af0fe8e29397ddb5e0bc33fb52d109afa1f3b0a2d9e14affc127",
    "arcene_valid.svm": "0f7e5dfdb1c7db5da5a6b0c399c25a6d209d5fa45201a1ac011f5a8fe35b57e1",
    "basehock.svm": "650c703bcad63c59bd426f54f464a92aa4d7cb7caa1689083560431185cdf35a",
    "dexter_scaled_train.svm": "cc958ec4c5035f48f1e894fe305ea0c9c77aa590f649241f631aacaf29f05b03",
    "dexter_scaled_valid.svm": "fd55f819e8a679597133d9037fac65253471cc2b19c432fec23d8b39f6f8ab0d",
    "dexter_train.svm": "3eebf3fdd1943a258ba8bf19d0308f5b4cfae7b76b4e6c582c9bdc865297caf5",
    "dorothea_train.svm": "b83d2fee6733f3d73b42f51f67aa864d16691c39a82a7be3a9c1d0c7b4eb1250",
    "dorothea_valid.svm": "8be80caae9d21c886e8861b0ab7063c64a13aacc62b2fd7e9e42bf8aa3427757",
    "pcmac.svm": "774f6d384f62c4a2c863891d2df92b65393bf012295e8eaec3993c7dac8324f7",
    "rcv1_small.vw": "348d59a15f8161852b817fedd45a0a9efa5e2602ea86d9e920ba7079f633e084",
    "rcv1_small_test.vw": "c0f5f4a00497c5cec53b47c0ebb8428cc7c364d436ac10f64b5be33d90bfe293",
    "relathe.svm": "d6a58762e5a4cb46d28503cec051c92e5604ecd4d1e1f41d3f9ddec5432f73ac",
    "agaricus-lepiota.data": "346b29ee7911ea8c7fbd88b66e03a07c4d6ceaa77d7fa93cd1ea2ea96ea9965c",
    "breast-cancer-wisconsin.data": (
        "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64"
    ),
    "crx.data": "bc1cabb50e69771855bd932f6b9e9d5fea4c1d834ae022d5259c2800a3de22d9",
    "housing.data": "e3e36f7b9e5435f9eb8320e106aebad00031fefa3064527da0c71dec59e49b76",
    "kr-vs-kp.keel.dat": "f47f7d920e117ab5764d3adcd2f6446ca596290261756ecd35c81b12fcaec061",
    "magic04.data": "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a",
    "spambase.data": "65233bcd56f2568ea04a67d813d718ede0f58a0355542958f93b5469d9dfc206",
    "wdbc.data": "11218503215d46bf9eb4e9bcf7da97b878f0cdae46c75863d00e5009ab91a76c",
    "wpbc.data": "5c85d6223eb19d2a17ce634c2b7c17650aa3076ceff007fcf38ba636c1b2c0a0",
    "zoo.data": "5dc3e977f8772d1b2411616a5c04e4b8fd04adfa56a15b43b23956db546a7d92",
}


def folder_of(folder: Folder) -> Path:
    """Return the folder of data sets.

    Parameters
    ----------
    folder : path-like, optional
        By default the value of the environment variable THRESHER_DATA.
    """
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if not named:
        raise ParameterError(
            f"folder: give the folder of the data sets, here or in the environment variable "
            f"{VARIABLE}"
        )
    path = Path(named)
    if not path.is_dir():
        raise ParameterError(f"folder: {path} is not a folder")
    return path


def find(folder: Path, name: str) -> Path | None:
    """Return the path of a file, plain or compressed; None if it does not exist.

    Parameters
    ----------
    folder : Path
    name : str
        Without the suffix of a compression.
    """
    for subfolder in _SUBFOLDERS:
        for suffix in _SUFFIXES:
            path = folder / subfolder / (name + suffix)
            if path.is_file():
                return path
    return None


def open_file(path: Path) -> io.BufferedReader:
    """Open a file for reading; the bytes are decompressed.

    Parameters
    ----------
    path : Path
    """
    return io.BufferedReader(open_streams.open_bytes(str(path)))


def is_known(path: Path) -> bool | None:
    """Tell whether a file has the known checksum; None if no checksum is known.

    Parameters
    ----------
    path : Path
    """
    name = path.name
    for suffix in _SUFFIXES[1:]:
        name = name.removesuffix(suffix)
    if name not in KNOWN:
        return None
    with open_file(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == KNOWN[name]
