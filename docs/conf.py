"""The site of the documentation: `make docs` builds it into docs/_build/html.

Nothing is loaded from another host, neither while building nor by the pages.
"""

import sys
import warnings
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER / "extensions"))

import thresher  # noqa: E402

project = "Thresher"
author = "The Thresher developers"
copyright = author
version = release = thresher.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "notebook_pages",
    "docstring_text",
    "command_pages",
    "names_in_text",
    "readable_pages",
]
exclude_patterns = ["_build"]
nitpicky = True
# Types of other libraries, and values in the sections "Returns" of docstrings.
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|scipy|pandas|polars|pyarrow|sklearn|ray|matplotlib)\..*")
]

# --- Markdown ------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# --- the reference -------------------------------------------------------------------------------

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = ["templates"]

# --- the gallery ---------------------------------------------------------------------------------

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)\w+\.py$",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 3600,
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "write_computation_times": False,
}

# --- HTML ----------------------------------------------------------------------------------------

highlight_language = "text"
smartquotes = False
toc_object_entries_show_parents = "hide"
html_theme = "pydata_sphinx_theme"
html_title = "Thresher"
html_favicon = "static/favicon.svg"
html_static_path = ["static", "interactive/static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
WIDE = ["rules", "defaults", "discovery_results", "results", "speed", "speed_where", "choose"]
WIDE += [f"{d}/{page.stem}" for d in ("rules", "coming_from") for page in (FOLDER / d).glob("*.md")]
html_theme_options = {
    "logo": {"text": "Thresher"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": [],
    "back_to_top_button": False,
    # Pages with wide tables use the whole width.
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in WIDE}},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "quickstart": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
