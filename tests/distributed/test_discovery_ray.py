"""Feature discovery on a Ray cluster of two nodes: the same bits as in one process."""

from __future__ import annotations

import numpy as np
import pytest

from support import clusters
from support.distributed_rows import rows_of, write_shards
from thresher.discovery import FeatureDiscovery
from thresher.distributed import discover

pytestmark = [
    *clusters.on_ray,
    pytest.mark.filterwarnings("ignore::thresher.discovery.DiscoveryWarning"),
]


def test_workers_give_the_bits_of_one_process(ray_nodes, tmp_path):
    files = write_shards(tmp_path / "shards", *rows_of(rows=800))
    alone = discover(FeatureDiscovery(random_state=0), files, workers=0)
    with ray_nodes.connect():
        together = discover(FeatureDiscovery(random_state=0), files)
    np.testing.assert_array_equal(together.z_, alone.z_)
    np.testing.assert_array_equal(together.qvalues_, alone.qvalues_)
    np.testing.assert_array_equal(together.selected_, alone.selected_)
    assert len(alone.selected_) >= 3
