"""The command line: parse options, call the library, print results. Only this package prints."""

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C also works while modules are being imported."""
    try:
        from thresher.cli.app import main as run
    except KeyboardInterrupt:
        import sys

        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    run()
