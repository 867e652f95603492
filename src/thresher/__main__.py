"""The command line as a module: ``python -m thresher``."""

from thresher.cli import program

program()
