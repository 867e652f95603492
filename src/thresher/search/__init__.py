"""Search: grids of parameters over folds, from one reading of the rows per pass."""

from thresher.search.one_pass import OnePassSearchCV
from thresher.search.path import SparsityPath
from thresher.search.progress import SearchProgress

__all__ = ["OnePassSearchCV", "SearchProgress", "SparsityPath"]
