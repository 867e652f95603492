"""Run a fuzz target with atheris: `run.py TARGET [OPTION OF LIBFUZZER] ... FOLDER ...`."""

from __future__ import annotations

import gc
import os
import random
import shlex
import sys
import tempfile
from pathlib import Path
from types import FunctionType


def main() -> None:
    import atheris

    sys.path.insert(0, str(Path(__file__).parents[1]))
    from fuzzing.targets import CHANGES, TARGETS

    # Atheris keeps an input that takes new branches. `atheris.instrument_imports` would be simpler,
    # but does not work with the import hook of an editable install.
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and f"{function.__module__}.".startswith("thresher."):
            atheris.instrument_func(function)

    name, *options = sys.argv[1:]
    target, change = TARGETS[name], CHANGES[name]
    again = shlex.join([sys.executable, __file__, name])  # libFuzzer starts this command to merge

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        choice = random.Random(seed).getrandbits(60)
        changed = change(bytes(data), lambda part: atheris.Mutate(part, len(part) + 64), choice)
        return changed[:max_size]

    # In memory if the system allows it: models are written with a sync of the disk.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        place = Path(folder)
        atheris.Setup(
            [again, *options], lambda data: target(bytes(data), place), custom_mutator=mutate
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
