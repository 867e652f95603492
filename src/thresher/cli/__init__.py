"""The command line: parse, call the library, render. All printing is here."""

__all__ = ["main"]


def main() -> None:
    """Run the command line; an interruption while it is loaded ends it as any other."""
    try:
        from thresher.cli.app import main as run
    except KeyboardInterrupt:
        import sys

        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    run()
