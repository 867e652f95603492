"""The map in CONTRIBUTING.md names every folder, and no folder that does not exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAP = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add a loss")[0]
GENERATED = {"gallery"}  # by `make docs`
ROOTS = ("cpp", "cpp/thresher", "src/thresher", "tests", "experiments", "docs")


def folders(under: str) -> list[str]:
    """Return the names of the folders in one; versions and caches are left out."""
    found = (path.name for path in (ROOT / under).iterdir() if path.is_dir())
    return sorted({name for name in found if re.fullmatch(r"[a-z][a-z_]*", name)} - GENERATED)


def test_the_map_names_every_folder() -> None:
    named = set(re.findall(r"`([a-z_/]+)/`", MAP))
    ends = {name.rpartition("/")[2] for name in named}
    mirrored = set(folders("src/thresher")) | {"core", "io"}  # tests/ has the same folders
    for under in ROOTS:
        for name in folders(under):
            if under == "tests" and name in mirrored:
                continue
            assert name in ends, f"{under}/{name} is not in the map of CONTRIBUTING.md"


def test_every_folder_of_the_map_exists() -> None:
    everywhere = {
        path.relative_to(ROOT).as_posix()
        for top in (
            "cpp",
            "src",
            "tests",
            "benchmarks",
            "experiments",
            "docs",
            "examples",
            "deploy",
        )
        for path in (ROOT / top, *(ROOT / top).rglob("*"))
        if path.is_dir()
    }
    for name in re.findall(r"`([a-z_/]+)/`", MAP):
        assert any(path == name or path.endswith("/" + name) for path in everywhere), name
