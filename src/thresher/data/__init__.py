"""The only place that looks at the types of user data: arrays and matrices -> batches of rows."""

from thresher.data.arrays import as_batch, is_sparse, nonzeros

__all__ = ["as_batch", "is_sparse", "nonzeros"]
