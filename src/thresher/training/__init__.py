"""Learners taken through sources of rows: passes, early stopping, checkpoints."""
