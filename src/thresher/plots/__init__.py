"""Displays in scikit-learn's manner; they need matplotlib (`pip install 'thresher[plot]'`)."""
