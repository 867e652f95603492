"""Reads user data: arrays, matrices, files and iterators become batches and blocks of rows."""

from thresher.data.arrays import as_batch, checked, is_source, is_sparse, nonzeros, summed

__all__ = ["as_batch", "checked", "is_source", "is_sparse", "nonzeros", "summed"]
