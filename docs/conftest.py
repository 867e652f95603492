"""For pytest: where modules are, and what it leaves out because it is generated or for Sphinx."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent / folder) for folder in ("checks", "extensions")]

collect_ignore_glob = ["_build/*", "api/generated/*", "commands/generated/*", "gallery/*"]
collect_ignore = ["conf.py"]
