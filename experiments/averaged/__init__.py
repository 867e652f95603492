"""Dekel: Linear Learning with Sparse Data (2017)."""
