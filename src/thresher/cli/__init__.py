"""The command line: parse, call the library, render. All printing is here."""

from thresher.cli.app import main

__all__ = ["main"]
