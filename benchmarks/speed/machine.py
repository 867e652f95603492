"""The machine that runs the table: model, caches, instruction sets, cores."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

# Instruction sets that matter here, in the order of the page.
_SETS = ("sse4_2", "avx", "fma", "avx2", "bmi2", "avx512f", "avx512bw", "avx512vl", "avx512vbmi")
_CPU = Path("/sys/devices/system/cpu")


def machine() -> dict[str, Any]:
    """Describe the machine; what the system does not tell is left out."""
    info = _read(Path("/proc/cpuinfo"))
    model = re.search(r"^model name\s*:\s*(.+)$", info, re.MULTILINE)
    flags = re.search(r"^flags\s*:\s*(.+)$", info, re.MULTILINE)
    known = set(flags[1].split()) if flags else set()
    return {
        "cpu": model[1].strip() if model else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "caches": _caches(),
        "instruction_sets": [name for name in _SETS if name in known],
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def short_name(found: dict[str, Any]) -> str:
    """Return a name for files.

    Examples
    --------
    >>> short_name({"cpu": "Intel(R) Xeon(R) CPU @ 2.80GHz", "cores": 2})
    'intel-xeon-cpu-2.80ghz-2cores'
    """
    cpu = re.sub(r"\((?:r|tm)\)", "", found["cpu"].lower())
    return "-".join(re.findall(r"[a-z0-9.]+", cpu)) + f"-{found['cores']}cores"


def _caches() -> dict[str, str]:
    """Return the size of each cache of the first processor, such as {"L1 data": "32K"}."""
    kinds = {"Data": " data", "Instruction": " instructions", "Unified": ""}
    return {
        f"L{_read(cache / 'level')}{kinds.get(_read(cache / 'type'), '')}": _read(cache / "size")
        for cache in sorted((_CPU / "cpu0" / "cache").glob("index*"))
    }


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
