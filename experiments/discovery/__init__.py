"""Whether the stated error of `FeatureDiscovery` is the actual one: ``-m experiments.discovery``.

`designs` makes rows whose true features are known, and `real_rows` draws labels for rows of data
sets. `measuring` counts true and false features, `others` does it for other methods, and `page`
writes docs/discovery_results.md.
"""

from __future__ import annotations

import os

for _library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(_library, "1")
