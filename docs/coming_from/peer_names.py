"""Writes tests/fixtures/peer_names.json: what other libraries call things.

    PYTHON docs/coming_from/peer_names.py

PYTHON is one that has vowpalwabbit and river. If there is an Rscript with glmnet, its names are
written again, too. `tests/test_coming_from.py` compares the tables of docs/coming_from with the
file, so the libraries need not be installed for it.
"""

import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "fixtures" / "peer_names.json"
R_CODE = """
library(glmnet)
cat(as.character(packageVersion("glmnet")), "\\n")
set.seed(1); x <- matrix(rnorm(200), 50); y <- x[, 1] + rnorm(50)
one <- function(name, words) cat(name, words, "\\n")
for (name in c("glmnet", "cv.glmnet", "assess.glmnet", "predict.glmnet", "coef.glmnet",
               "plot.cv.glmnet"))
  one(name, names(formals(getFromNamespace(name, "glmnet"))))
one("fit", names(glmnet(x, y)))
one("cv", names(cv.glmnet(x, y)))
"""


def of_vw() -> list[str]:
    """Return all options of vw, as its help shows them."""
    code = "import vowpalwabbit; vowpalwabbit.Workspace('--help')"  # it ends the process
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    found = (re.match(r" {4}((?:-\w, )?--[\w-]+)", line) for line in shown.split("\n"))
    return sorted({option for hit in found if hit for option in hit[1].split(", ")})


def of_river() -> dict[str, list[str]]:
    """Return the names of river in its page, with their parameters."""
    text = (ROOT / "docs" / "coming_from" / "river.md").read_text()
    found = {}
    for module, name in sorted(set(re.findall(r"\b((?:[a-z_]+\.)*[a-z_]+)\.(\w+)", text))):
        try:
            thing = getattr(importlib.import_module(f"river.{module}"), name)
        except (ImportError, AttributeError):
            continue
        if callable(thing):
            members = [m for m in dir(thing) if inspect.isclass(thing) and not m.startswith("_")]
            found[f"{module}.{name}"] = [*inspect.signature(thing).parameters, *members]
    return found


def of_glmnet() -> dict[str, list[str]]:
    """Return functions of glmnet with their arguments, and the names of its results."""
    command = ["Rscript", "--vanilla", "-e", R_CODE]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    version, *lines = shown.strip().split("\n")
    return {"version": [version.strip()], **{w[0]: w[1:] for w in (x.split() for x in lines)}}


def main() -> None:
    """Write the file."""
    names = json.loads(FILE.read_text()) if FILE.exists() else {}
    names["vowpalwabbit"] = {"version": metadata.version("vowpalwabbit"), "options": of_vw()}
    names["river"] = {"version": metadata.version("river"), "names": of_river()}
    if shutil.which("Rscript"):
        glmnet = of_glmnet()
        names["glmnet"] = {"version": glmnet.pop("version")[0], "names": glmnet}
    FILE.write_text(json.dumps(names, indent=1) + "\n")


if __name__ == "__main__":
    main()
