"""Style and script of all pages: colours are here, CSS and script in files."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

_LIGHT = """{ --ink: #1a1f26; --soft: #5c6673; --line: #dde2e8; --paper: #ffffff; --tint: #f4f6f8;
  --point: #98a2ae; --edge: #0b67b2; --best: #c2410c; --plus: #0b67b2; --minus: #c2410c;
  --s0: #0072b2; --s1: #d55e00; --s2: #00845f; --s3: #b0558a; --s4: #a86f00; --s5: #2f8fc4;
  --s6: #1a1f26; color-scheme: light; }"""
_DARK = """{ --ink: #e7eaee; --soft: #9ba6b3; --line: #323a44; --paper: #12161b; --tint: #1b2128;
  --point: #74808d; --edge: #5aaef5; --best: #fb923c; --plus: #5aaef5; --minus: #fb923c;
  --s0: #5aaef5; --s1: #fb923c; --s2: #3fc79a; --s3: #e59ac4; --s4: #e6b450; --s5: #8fd0f5;
  --s6: #e7eaee; color-scheme: dark; }"""


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


# A notebook has its own theme: JupyterLab and VS Code set it in an attribute.
STYLE = f"""
.thresher {_LIGHT}
@media (prefers-color-scheme: dark) {{ .thresher {_DARK} }}
[data-jp-theme-light=true] .thresher, [data-vscode-theme-kind=vscode-light] .thresher {_LIGHT}
[data-jp-theme-light=false] .thresher, [data-vscode-theme-kind=vscode-dark] .thresher {_DARK}
@media print {{ .thresher {_LIGHT} }}
{_file("parts.css")}"""

PAGE_STYLE = _file("page.css")

SCRIPT = "\n" + _file("page.js")

# A browser runs only this script, and loads nothing from anywhere: if a name of a stranger ever got
# into a page as HTML, it could neither run nor send anything. Bars have their width in an
# attribute, for which there is no hash.
_DIGEST = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; script-src 'sha256-{_DIGEST}'; style-src 'unsafe-inline'; "
    f"base-uri 'none'; form-action 'none'"
)
