"""Classes that are unknown before training, and are added when their first row is reached."""

from __future__ import annotations

from thresher.data.labels import ArrivingClasses, Labels
from thresher.data.visits import Visit
from thresher.errors import OutOfMemoryError, setting
from thresher.training.outputs import Outputs
from thresher.training.shared_outputs import SharedOutputs


def arrivals(labels: Labels, outputs: Outputs, visit: Visit) -> list[int]:
    """Find the new classes of a visit; return the positions of their first rows, last first."""
    if not isinstance(labels, ArrivingClasses):
        return []
    found = labels.arrivals(visit.block, visit.order)
    if found:
        assert isinstance(outputs, SharedOutputs)
        outputs.renumber(labels.lane_of)
    return found[::-1]


def add_classes(outputs: Outputs, count: int) -> None:
    """Add outputs for new classes."""
    assert isinstance(outputs, SharedOutputs)
    try:
        outputs.add(count)
    except MemoryError:
        raise OutOfMemoryError(
            "not enough memory for the weights of another class in a dense store",
            hint=(setting("store", "hashed"), " needs memory only for the features seen, and ",
                  setting("bits", call="scan"), " limits their number"),
        ) from None  # fmt: skip


def drop_missing_classes(labels: Labels, outputs: Outputs) -> None:
    """Remove classes whose first row was not reached."""
    if isinstance(labels, ArrivingClasses):
        assert isinstance(outputs, SharedOutputs)
        outputs.drop_missing()
        labels.keep(len(outputs))
