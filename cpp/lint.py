"""Run clang-tidy on the C++ files that changed since they passed: `python cpp/lint.py`.

The compile commands and the headers that a file includes are those of the editable build
(`make build`). A file passes again only if neither it, nor a header, nor .clang-tidy changed;
build/tidy/passed.json keeps a hash of these. Precompiled headers are left out of the commands, so
that a file that does not include what it needs is an error here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "tidy"
PASSED = WORK / "passed.json"


def tool(name: str) -> str:
    """Return a program of the environment, else that of the PATH."""
    own = Path(sys.executable).with_name(name)
    return str(own) if own.exists() else name


def editable_build() -> Path:
    """Return the folder of the newest editable build."""
    found = sorted(
        ROOT.glob("build/*-editable/compile_commands.json"), key=lambda p: p.stat().st_mtime
    )
    if not found:
        sys.exit("error: no build/*-editable/compile_commands.json; run `make build` first")
    return found[-1].parent


def own_commands(build: Path) -> dict[str, dict[str, str]]:
    """Return the compile commands of our files, by file, without precompiled headers."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if not path.is_relative_to(ROOT / "cpp") or not path.exists():
            continue
        words = shlex.split(entry["command"])
        while "-include" in words:
            at = words.index("-include")
            del words[at : at + 2]
        words = [word for word in words if word != "-Winvalid-pch"]
        commands[str(path)] = {**entry, "command": shlex.join(words)}
    return commands


def headers(build: Path) -> dict[str, list[str]]:
    """Return the files that each object file was made from, as ninja has noted them."""
    done = subprocess.run([tool("ninja"), "-t", "deps"], cwd=build, capture_output=True, text=True)
    found: dict[str, list[str]] = {}
    target = ""
    for line in done.stdout.splitlines():
        if line.startswith("    "):
            found[target].append(line.strip())
        elif ": #deps" in line:
            target = line.split(":")[0]
            found[target] = []
    return found


def hash_of(paths: list[str], command: str, known: dict[str, bytes]) -> str:
    """Return a hash of a command and the contents of files under cpp/."""
    total = hashlib.sha256(command.encode())
    for path in sorted(set(paths)):
        if not Path(path).is_relative_to(ROOT):
            continue
        if path not in known:
            file = Path(path)
            known[path] = hashlib.sha256(file.read_bytes()).digest() if file.exists() else b""
        total.update(path.encode() + known[path])
    return total.hexdigest()


def main() -> int:
    """Check what changed; return 1 if clang-tidy found something."""
    build = editable_build()
    commands = own_commands(build)
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "compile_commands.json").write_text(json.dumps(list(commands.values())))
    version = subprocess.run(
        [tool("clang-tidy"), "--version"], capture_output=True, text=True
    ).stdout
    passed = json.loads(PASSED.read_text()) if PASSED.exists() else {}
    objects, known = headers(build), {}
    everything = [str(p) for p in (ROOT / "cpp").rglob("*.hpp")]
    now = {}
    for path, entry in commands.items():
        files = [str((build / f).resolve()) for f in objects.get(entry.get("output", ""), [])]
        files = [f for f in files if "cmake_pch" not in f] or everything
        own = [*files, path, str(ROOT / ".clang-tidy")]
        now[path] = hash_of(own, version + entry["command"], known)
    due = sorted(path for path in commands if passed.get(path) != now[path])

    def check(path: str) -> bool:
        run = [tool("clang-tidy"), "-p", WORK, "--quiet", path]
        run += ["--extra-arg=-Wno-unknown-warning-option"]
        done = subprocess.run(run, capture_output=True, text=True)
        if done.returncode:
            print(done.stdout + done.stderr, flush=True)
        return done.returncode == 0

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(due, pool.map(check, due), strict=True))
    kept = {path: now[path] for path in commands if results.get(path, True)}
    PASSED.write_text(json.dumps(kept))
    failed = sum(not ok for ok in results.values())
    print(f"clang-tidy: {len(due)} of {len(commands)} files checked, {failed} with findings")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
