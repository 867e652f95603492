"""Names in Markdown become links: `FTRLClassifier` to the reference, `thresher train` to its page.

So the pages need no directives, and are plain Markdown elsewhere. The first mention in a section is
a link; later ones are not. A link whose text is the name of a file shows the title of its page.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_refnode

import thresher
from command_pages import pages

_NAME = re.compile(r"(?:thresher\.)?([A-Za-z_]\w*(?:\.\w+)?)(\(.*\))?", re.DOTALL)
_COMMAND = re.compile(r"thresher ([a-z]+)\b.*", re.DOTALL)
_PAGE = re.compile(r"docs/([\w/-]+)\.md")
_PAGE_TYPE = "page of this site"
_FILE = re.compile(r"[\w./-]+\.md")
_NOT_IN = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.download_reference)
_WORDS = {"load", "look", "merge", "compare", "evaluate", "scan", "Source", "__version__"}
_MODULES = {name for name in thresher.__all__ if inspect.ismodule(getattr(thresher, name))}
_COMMANDS = frozenset(pages())


class LinkNames(SphinxTransform):
    """Makes links of names of ours in inline code."""

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Go through the document; pages of the reference have links of their own."""
        if self.env.docname.startswith(("api/", "gallery/")):
            return
        seen: set[tuple[int, str]] = set()
        for code in list(self.document.findall(nodes.literal)):
            link = self._link(code)
            if link is None or _inside(code):
                continue
            mention = (id(_section(code)), link["reftarget"])
            if mention not in seen:
                seen.add(mention)
                code.replace_self(link)
                link += code

    def _link(self, code: nodes.literal) -> addnodes.pending_xref | None:
        text = code.astext()
        here = {"refdoc": self.env.docname, "refwarn": True, "refexplicit": True}
        if (match := _COMMAND.fullmatch(text)) and match[1] in _COMMANDS:
            target = f"commands/generated/{match[1]}"
            return addnodes.pending_xref("", reftype=_PAGE_TYPE, reftarget=target, **here)
        if (match := _PAGE.fullmatch(text)) and match[1] in self.env.found_docs:
            return addnodes.pending_xref("", reftype=_PAGE_TYPE, reftarget=match[1], **here)
        if (match := _NAME.fullmatch(text)) and _public(text, match[1], match[2]):
            return addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=f"thresher.{match[1]}", **here
            )
        return None


def _public(text: str, name: str, call: str | None) -> bool:
    """Return whether a piece of code names something that the reference describes."""
    whole = text.startswith("thresher.")
    module, _, member = name.partition(".")
    if module in _MODULES:
        return whole and (not member or member in getattr(thresher, module).__all__)
    if member or name not in thresher.__all__ or name == "__version__":
        return False
    return whole or name not in _WORDS or (call is not None and name != "load")


def _inside(code: nodes.Node) -> bool:
    while code.parent is not None:
        code = code.parent
        if isinstance(code, _NOT_IN):
            return True
    return False


def _section(code: nodes.Node) -> nodes.Node:
    while code.parent is not None and not isinstance(code, nodes.section):
        code = code.parent
    return code


def _title_links(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Give links whose text is the name of a file the title of its page as text."""
    for link in document.findall(nodes.reference):
        if not (link.get("internal") and _FILE.fullmatch(link.astext())):
            continue
        address = posixpath.join(posixpath.dirname(docname), link["refuri"].partition("#")[0])
        name = posixpath.normpath(address).removesuffix(".html")
        if name in app.env.titles:
            link.children = []
            link += nodes.inline("", app.env.titles[name].astext())


def _resolve(
    app: Sphinx, _: BuildEnvironment, node: addnodes.pending_xref, code: nodes.TextElement
) -> nodes.reference | None:
    """Return the link to a page; Sphinx's own kind of link would lose that its text is code."""
    if node["reftype"] != _PAGE_TYPE:
        return None
    return make_refnode(app.builder, node["refdoc"], node["reftarget"], "", code)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform, and how its links are made."""
    app.add_transform(LinkNames)
    app.connect("doctree-resolved", _title_links)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
