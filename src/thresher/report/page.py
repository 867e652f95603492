"""HTML pages with all style and script inside: they work offline, light and dark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from thresher._version import __version__
from thresher.printable import printable
from thresher.report.style import PAGE_STYLE, POLICY, SCRIPT, STYLE


class Section(NamedTuple):
    """A section of a page.

    Attributes
    ----------
    title : str
        Heading as text; empty: no heading.
    body : str
        HTML.
    id : str
        Name of the element for links; empty: made from the title.

    Examples
    --------
    >>> from thresher.report.page import Section, note
    >>> Section("Results", note("none yet")).title
    'Results'
    """

    title: str
    body: str
    id: str = ""

    @property
    def address(self) -> str:
        """The `id` of the element: letters, digits and hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", (self.id or self.title).lower()).strip("-") or "section"


def page(title: str, sections: Sequence[Section], lead: str = "") -> str:
    """Return a complete document, for wide and narrow screens, light and dark, and for print.

    Parameters
    ----------
    title : str
        Plain text.
    sections : sequence of Section
        With more than three titles, a menu stays at the top.
    lead : str
        A sentence or two below the title, as plain text.

    Examples
    --------
    >>> from thresher.report.page import Section, page
    >>> page("Search", [Section("Table", "<p>none</p>")]).splitlines()[0]
    '<!DOCTYPE html>'
    """
    parts = []
    for section in sections:
        heading = f"<h2>{text(section.title)}</h2>\n" if section.title else ""
        parts.append(f'<section id="{section.address}">\n{heading}{section.body}\n</section>')
    links = [
        f'<a href="#{section.address}">{text(section.title)}</a>'
        for section in sections
        if section.title
    ]
    menu = f'<nav aria-label="Sections">{" ".join(links)}</nav>\n' if len(links) > 3 else ""
    below = f'<p class="lead">{text(lead)}</p>\n' if lead else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>{text(title)}</title>
<style>{STYLE}{PAGE_STYLE}</style>
</head>
<body class="thresher">
<header>
<h1>{text(title)}</h1>
{below}</header>
{menu}<main>
{chr(10).join(parts)}
</main>
<footer>thresher {__version__}</footer>
<script>{SCRIPT}</script>
</body>
</html>
"""


def fragment(body: str) -> str:
    r"""Return HTML for a notebook: with a style that changes nothing else, and without script.

    Parameters
    ----------
    body : str
        HTML.

    Examples
    --------
    >>> from thresher.report.page import fragment, note
    >>> fragment(note("nothing")).endswith('<p class="note">nothing</p>\n</div>')
    True
    """
    return f'<div class="thresher"><style>{STYLE}</style>\n{body}\n</div>'


def facts(mapping: Mapping[str, object]) -> str:
    """Return names and values as a definition list.

    Parameters
    ----------
    mapping : mapping
        Whole numbers are shown with commas, floats with six digits, others with `str`.

    Examples
    --------
    >>> from thresher.report.page import facts
    >>> print(facts({"rows": 12000, "rule": "ftrl"}))
    <dl>
    <dt>rows</dt><dd>12,000</dd>
    <dt>rule</dt><dd>ftrl</dd>
    </dl>
    """
    lines = [
        f"<dt>{text(name)}</dt><dd>{text(_value_text(value))}</dd>"
        for name, value in mapping.items()
    ]
    return "\n".join(["<dl>", *lines, "</dl>"])


def tiles(mapping: Mapping[str, object]) -> str:
    """Return large numbers for the top of a page, each with its name below.

    Parameters
    ----------
    mapping : mapping
        As for `facts`.
    """
    lines = [
        f'<div class="tile"><b>{text(_value_text(value))}</b><span>{text(name)}</span></div>'
        for name, value in mapping.items()
    ]
    return "\n".join(['<div class="tiles">', *lines, "</div>"])


def note(words: str) -> str:
    """Return a remark as a paragraph.

    Parameters
    ----------
    words : str
        Plain text.

    Examples
    --------
    >>> from thresher.report.page import note
    >>> note("a < b")
    '<p class="note">a &lt; b</p>'
    """
    return f'<p class="note">{text(words)}</p>'


def text(words: str) -> str:
    r"""Return text escaped for HTML and XML; control characters become visible.

    Parameters
    ----------
    words : str

    Examples
    --------
    >>> from thresher.report.page import text
    >>> print(text("<b>"), text("\x00"))
    &lt;b&gt; \x00
    """
    return _NO_CHARACTERS.sub("\ufffd", escape(printable(words, keep="\n\t")))


_NO_CHARACTERS = re.compile("[\ufffe\uffff]")  # not allowed in XML (XML 1.0, 2.2)


def _value_text(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
