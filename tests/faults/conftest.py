"""The preloaded library is for Linux with glibc, and not beside another one, as of a sanitizer."""

import os
import platform

collect_ignore_glob = (
    ["test_*.py"] if platform.libc_ver()[0] != "glibc" or os.environ.get("LD_PRELOAD") else []
)
