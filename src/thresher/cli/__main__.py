"""Run the command line by `python -m thresher.cli`."""

from thresher.cli import program

program()
