"""`look`: what data are, before training (`thresher look`).

The package has another name than its function: importing ``thresher.look`` as a package would
replace the function `thresher.look`.
"""

from thresher.overview.looking import Look, look

__all__ = ["Look", "look"]
