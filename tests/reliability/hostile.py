"""Model files and checkpoints with changed bytes: each is refused with an error that names it.

The digest of a checkpoint leaves out the seconds that training took: they may be changed.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import thresher
from thresher import ModelFileError
from thresher.training import checkpoint

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


def read_model(path: Path) -> str:
    """Read a model, and the state of its learner, which has a checksum of its own."""
    model = thresher.load(path)
    if model.learner is not None:
        model.learner.tensors()
    return ""


def read_checkpoint(path: Path) -> str:
    """Return the digest of a checkpoint."""
    return checkpoint.read(path).digest


READERS = {"model": read_model, "checkpoint": read_checkpoint}


def whole_files(kind: str, folder: Path) -> list[tuple[bytes, str]]:
    """Return the files of the corpus that can be read, and what is read from them."""
    found = []
    for path in sorted((CORPUS / kind).iterdir()):
        (copy := folder / "a.thresher").write_bytes(path.read_bytes())
        try:
            digest = READERS[kind](copy)
        except ModelFileError:
            continue
        found.append((path.read_bytes(), digest))
    assert found
    return found


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Change bits, cut the end, or repeat a part."""
    at = rng.randrange(len(data))
    how = rng.randrange(4)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + data[at : at + rng.randint(1, 64)] + data[at:]
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def tried(count: int, seed: int) -> tuple[int, list[str]]:
    """Read `count` damaged files; return that number and what was wrong."""
    rng = random.Random(seed)
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {kind: whole_files(kind, folder) for kind in READERS}
        path = folder / "damaged.thresher"
        for turn in range(count):
            kind = rng.choice(list(READERS))
            data, digest = rng.choice(files[kind])
            path.write_bytes(damaged(data, rng))
            try:
                found = READERS[kind](path)
            except ModelFileError as error:
                if str(path) in str(error):
                    continue
                failures.append(f"{kind}, seed {seed}, file {turn}: no name in {error}")
            except Exception as error:  # any other error is a failure of the reader
                failures.append(f"{kind}, seed {seed}, file {turn}: {error!r}")
            else:
                if kind == "checkpoint" and found == digest:
                    continue
                failures.append(f"{kind}, seed {seed}, file {turn}: was read")
    return count, failures
