"""The command line: parse, call the library, render."""

from thresher._version import __version__


def main() -> None:
    """Print the version."""
    print(f"thresher {__version__}")
