"""The command line: parse options, call the library, print results. Only this package prints."""

__all__ = ["main"]


def main() -> None:
    """Run the command line; signals also end it while modules are being imported."""
    _end_by_signals()
    try:
        from thresher.cli.app import main as run
    except KeyboardInterrupt:
        import sys

        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    run()


def _end_by_signals() -> None:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does; those that are ignored stay ignored."""
    import signal
    import threading

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, interrupt)
