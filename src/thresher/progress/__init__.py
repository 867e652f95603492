"""Progress as lines of a table, for the command line and for `verbose` of estimators."""
