"""Rows and models for tests of pages, and functions that read a page."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from thresher import TruncatedGradientClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 20))
SIGNAL = X[:, 0] - X[:, 7] + 0.3 * RNG.normal(size=300)
TWO = np.where(SIGNAL > 0, "spam", "ham")
HOSTILE = '</script><script>alert("1")</script>&amp;'
TRUNCATED = TruncatedGradientClassifier(eta0=0.1, gravity=1e-2, random_state=0)


def parsed(html: str) -> ET.Element:
    """Parse a page as XML."""
    return ET.fromstring(html.removeprefix("<!DOCTYPE html>\n"))


def section(html: str, name: str) -> str:
    """Return the text of a section."""
    found = parsed(html).find(f".//section[@id='{name}']")
    assert found is not None, name
    return " ".join(" ".join(found.itertext()).split())
