"""Learning from rows on several machines, by a Ray cluster."""

from __future__ import annotations
