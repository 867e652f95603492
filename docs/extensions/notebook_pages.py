"""Notebooks as pages, with the outputs that are stored in them; nothing is executed.

A notebook becomes a page of Markdown: text as it is, cells of code, and their outputs. Pictures are
in the page itself. The text before a picture describes it: `metadata.alt` of the cell.
"""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.config import Config


def page_of(notebook: dict[str, Any]) -> str:
    """Return a notebook as Markdown.

    Parameters
    ----------
    notebook : dict
        The content of a file .ipynb, in format 4.
    """
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(_fenced("python", text))
        parts += [_shown(output, cell["metadata"]) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _fenced(language: str, text: str) -> str:
    return f"``````{language}\n{text.rstrip()}\n``````"


def _shown(output: dict[str, Any], metadata: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" not in data:
        return _fenced("text", "".join(output.get("text") or data["text/plain"]))
    picture = f'<img alt="{metadata["alt"]}" src="data:image/png;base64,{data["image/png"]}"/>'
    return _fenced("{raw} html", picture)


class NotebookParser(MystParser):
    """Reads a notebook as the Markdown that it stands for."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the page of a notebook."""
        super().parse(page_of(json.loads(inputstring)), document)


def _leave_out_downloads(_: Sphinx, config: Config) -> None:
    """Leave out the notebooks that the gallery writes beside its pages, to download."""
    config.exclude_patterns.append("gallery/*.ipynb")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the files and their parser."""
    app.setup_extension("myst_parser")
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("config-inited", _leave_out_downloads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
