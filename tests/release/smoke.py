"""A smoke test of an installed package: `python smoke.py`, in a folder outside of the repository.

It needs only the package and what it depends on: no compiler, no pytest, no file of the
repository. `--wheel FILE` first makes an environment in a temporary folder, installs the wheel
there, and runs the test in it, with no compiler, make or CMake on the path.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

BUILD_TOOLS = ("c++", "cc", "clang", "cmake", "g++", "gcc", "make", "ninja")
# They need packages of extras.
WITH_EXTRAS = ("thresher.distributed.ray", "thresher.plots", "thresher.serving.server")


def main() -> None:
    """Run the test here, or in a new environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help="a wheel, or a folder of wheels")
    parser.add_argument("--tools", action="store_true", help="build tools may be on the path")
    chosen = parser.parse_args()
    if chosen.wheel is None:
        test(chosen.tools)
    else:
        test_wheel(suitable(chosen.wheel.resolve()), Path(__file__).resolve())


def suitable(wheel: Path) -> Path:
    """Return the wheel for this Python, of a folder of wheels; a file is returned as it is."""
    if wheel.is_file():
        return wheel
    kind = "cp311-cp311" if sys.version_info[:2] == (3, 11) else "abi3"
    found = sorted(wheel.glob(f"thresher-*-{kind}-*.whl"))
    assert len(found) == 1, f"{len(found)} wheels {kind} in {wheel}"
    return found[0]


def test_wheel(wheel: Path, script: Path) -> None:
    """Install a wheel in a new environment, and run the test there."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/env"], check=True)
        programs = Path(folder, "env", "bin")
        environment = {"PATH": str(programs), "HOME": folder, "LANG": "C.UTF-8"}
        for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "SSL_CERT_FILE"):
            if name in os.environ:
                environment[name] = os.environ[name]
        python = str(programs / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
        subprocess.run([*install, str(wheel)], check=True, env=environment, cwd=folder)
        Path(folder, "work").mkdir()
        command = [python, "-I", str(script)]
        subprocess.run(command, check=True, env=environment, cwd=f"{folder}/work")


def test(tools: bool) -> None:
    """Run all steps; an error ends the program."""
    found = [name for name in BUILD_TOOLS if shutil.which(name)]
    assert tools or not found, f"on the path: {', '.join(found)}; see --tools"
    package = test_package()
    count = test_imports(package)
    with tempfile.TemporaryDirectory() as folder:
        test_python(Path(folder))
        test_commands(Path(folder))
    version = metadata.version("thresher")
    print(f"thresher {version}, Python {sys.version.split()[0]}: {count} modules, all steps passed")


def test_package() -> Path:
    """The installed package is used, with its types and its licence; return its folder."""
    import thresher

    package = Path(thresher.__file__).parent
    assert "site-packages" in package.parts, f"not an installed package: {package}"
    assert thresher.__version__ == metadata.version("thresher")
    assert (package / "py.typed").is_file()
    names = [file.name for file in metadata.files("thresher") or ()]
    assert "LICENSE" in names
    return package


def test_imports(package: Path) -> int:
    """Every module can be imported without the packages of extras; return how many."""
    count = 0
    for module in pkgutil.walk_packages([str(package)], "thresher."):
        if module.name.endswith("__main__") or module.name.startswith(WITH_EXTRAS):
            continue
        importlib.import_module(module.name)
        count += 1
    return count


def test_python(folder: Path) -> None:
    """Fit, save and load a model: the loaded one predicts the same."""
    import numpy as np

    import thresher

    generator = np.random.default_rng(0)
    X = generator.normal(size=(2000, 50))
    y = X[:, 3] - X[:, 7] > 0
    fitted = thresher.FTRLClassifier(random_state=0).fit(X[:1500], y[:1500])
    assert fitted.score(X[1500:], y[1500:]) > 0.9
    fitted.model_.save(folder / "a.thresher")
    loaded = thresher.load(folder / "a.thresher")
    assert (loaded.predict(X) == fitted.predict(X)).all()
    assert {feature.name for feature in loaded.top(2)} == {3, 7}


def test_commands(folder: Path) -> None:
    """The command line makes a file, learns it, predicts it and shows the model."""
    own = Path(sys.executable).with_name("thresher")
    program = [str(own)] if own.exists() else [sys.executable, "-I", "-m", "thresher"]

    def run(*words: str) -> str:
        done = subprocess.run([*program, *words], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"thresher {' '.join(words)}: {done.stderr}"
        return done.stdout

    assert run("--version").split()[1] == metadata.version("thresher")
    run("demo", "--examples", "5000", "--features", "2000", "--relevant", "10", "--quiet")
    run("demo", "--write", "rows.vw", "--examples", "5000")
    run("train", "rows.vw", "-m", "b.thresher")
    run("predict", "b.thresher", "rows.vw", "-o", "answers.txt")
    assert len((folder / "answers.txt").read_text().splitlines()) == 5000
    assert "x^true" in run("inspect", "b.thresher", "--top", "2")
    (folder / "tiny.svm").write_text("1 1:1 3:2\n-1 2:1\n" * 50)
    run("train", "tiny.svm", "-m", "c.thresher", "--rule", "ftrl")


if __name__ == "__main__":
    main()
