"""The only place that looks at the types of user data: arrays and matrices -> batches of rows."""

from thresher.data.arrays import as_batch, checked, is_source, is_sparse, nonzeros, summed

__all__ = ["as_batch", "checked", "is_source", "is_sparse", "nonzeros", "summed"]
