"""HTML pages of models, searches and comparisons: single files that work offline."""
