"""Random sparse rows."""

import numpy as np
import scipy.sparse as sp


def sparse_rows(rows: int, columns: int, density: float, seed: int = 0) -> sp.csr_matrix:
    """Return rows with normal values at random places."""
    rng = np.random.default_rng(seed)
    return sp.random(rows, columns, density, "csr", rng=rng, data_rvs=rng.standard_normal)
