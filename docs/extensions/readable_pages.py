"""Small repairs of pages: names of buttons for people who do not see them, and blocks of code.

A button that unfolds the pages below another one has only a picture. It gets that page's name.
Examples that pytest runs end with an empty line, which the page leaves out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

_BUTTON = re.compile(r"(<a [^>]*>([^<]*)</a><details[^>]*>)<summary>")


def named(html: str) -> str:
    """Return a page with names for the buttons that unfold pages.

    Examples
    --------
    >>> named('<a href="a.html">Data</a><details><summary>')
    '<a href="a.html">Data</a><details><summary aria-label="Pages: Data">'
    """
    return _BUTTON.sub(r'\1<summary aria-label="Pages: \2">', html)


class NoEmptyEnd(SphinxTransform):
    """Removes empty lines at the end of blocks of code."""

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Go through the document."""
        for block in self.document.findall(nodes.literal_block):
            if len(block.children) == 1 and (text := block.astext()) != text.rstrip():
                block.rawsource = text.rstrip()
                block.children = []
                block += nodes.Text(text.rstrip())


def _finish(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    for file in Path(app.outdir).rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        if (better := named(text)) != text:
            file.write_text(better, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform, and what is done after a build."""
    app.add_transform(NoEmptyEnd)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
