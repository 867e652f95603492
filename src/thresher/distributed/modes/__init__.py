"""The ways to train on several machines: by averaging, by stages, by columns."""
