"""The old place of the words of the shell; goes when `cli/tune.py` no longer imports it."""

from __future__ import annotations

from contextlib import nullcontext as shell_words

__all__ = ["shell_words"]  # `thresher.cli.errors.shell_message` words errors where they are printed
