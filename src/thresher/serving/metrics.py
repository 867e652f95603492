"""Numbers about the server in the text format of Prometheus."""

from __future__ import annotations

import os
import resource
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from thresher._version import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_PAGE = os.sysconf("SC_PAGE_SIZE")

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters of requests and rows, and a histogram of times.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.observe("/predict", "POST", 200, 0.002)
    >>> [line for line in metrics.text().splitlines() if line.startswith("thresher_requests_t")]
    ['thresher_requests_total{path="/predict",method="POST",status="200"} 1']
    """

    def __init__(self) -> None:
        self.in_progress = 0
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._times: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._counts: dict[str, dict[str, int]] = {}
        self._began = time.time()

    def observe(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count a request.

        Parameters
        ----------
        path, method : str
            Of a known route, so that their number is bounded.
        status : int
        seconds : float
        """
        self._requests[path, method, status] += 1
        times = self._times.get(path)
        if times is None:
            times = self._times[path] = [0] * (len(_BOUNDS) + 1)
        times[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[path] += seconds

    def add(self, name: str, model: str, count: int = 1) -> None:
        """Add to a counter of a model: one of `_ABOUT`."""
        counts = self._counts.setdefault(name, {})
        counts[model] = counts.get(model, 0) + count

    def text(self, gauges: Mapping[str, Mapping[str, float]] | None = None) -> str:
        """Return all numbers.

        Parameters
        ----------
        gauges : mapping, optional
            Numbers of each model now: by metric, then by name of the model.
        """
        lines: list[str] = []
        requests = (
            ((("path", path), ("method", method), ("status", str(status))), count)
            for (path, method, status), count in sorted(self._requests.items())
        )
        lines += _metric("thresher_requests_total", "counter", "Requests answered.", requests)
        lines += self._histogram()
        for name, counts in sorted(self._counts.items()):
            lines += _metric(name, "counter", _ABOUT[name], _by_model(counts))
        for name, values in (gauges or {}).items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += _metric(name, kind, _ABOUT[name], _by_model(values))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        single: list[tuple[str, str, str, float]] = [
            ("thresher_requests_in_progress", "gauge", "Requests that are being answered.",
             self.in_progress),
            ("process_cpu_seconds_total", "counter", "Processor time of the server.",
             usage.ru_utime + usage.ru_stime),
            ("process_resident_memory_bytes", "gauge", "Memory of the server.", _memory()),
            ("process_start_time_seconds", "gauge", "Start, in seconds since 1970.", self._began),
        ]  # fmt: skip
        for name, kind, about, value in single:
            lines += _metric(name, kind, about, [((), value)])
        version = (("version", __version__),)
        lines += _metric("thresher_info", "gauge", "The version of Thresher.", [(version, 1)])
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        name = "thresher_request_seconds"
        lines = _heading(name, "histogram", "Time from the first byte of a request to its answer.")
        for path, times in sorted(self._times.items()):
            total = 0
            for bound, count in zip((*_BOUNDS, "+Inf"), times, strict=True):
                total += count
                labels = _labels((("path", path), ("le", str(bound))))
                lines.append(f"{name}_bucket{labels} {total}")
            labels = _labels((("path", path),))
            lines.append(f"{name}_sum{labels} {self._seconds[path]!r}")
            lines.append(f"{name}_count{labels} {total}")
        return lines


_ABOUT = {
    "thresher_rows_total": "Rows predicted or explained.",
    "thresher_rows_with_unknown_features_total": "Rows with features the model does not have.",
    "thresher_rows_learned_total": "Rows learned and stored in the log.",
    "thresher_checkpoints_total": "Checkpoints written.",
    "thresher_model_loads_total": "Versions of the model that were loaded.",
    "thresher_model_load_failures_total": "New files of the model that could not be loaded.",
    "thresher_model_nonzeros": "Nonzero weights of the model.",
    "thresher_model_loaded_seconds": "When the model was loaded, in seconds since 1970.",
    "thresher_log_bytes": "Bytes in the log since the last checkpoint.",
}


def _by_model(counts: Mapping[str, float]) -> Iterator[tuple[Labels, float]]:
    for model, count in sorted(counts.items()):
        yield (("model", model),), count


def _metric(name: str, kind: str, about: str, values: Iterable[tuple[Labels, float]]) -> list[str]:
    lines = _heading(name, kind, about)
    for labels, value in values:
        lines.append(f"{name}{_labels(labels)} {value!r}")
    return lines


def _heading(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels)
    return "{" + ",".join(pairs) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _memory() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * _PAGE
