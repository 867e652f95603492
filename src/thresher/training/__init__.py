"""Training on a source of rows: passes, early stopping, checkpoints."""
