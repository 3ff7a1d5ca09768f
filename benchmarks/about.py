"""Where figures were measured: versions, machine, commit."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("pyspark", "numpy", "scipy", "pyarrow", "scikit-learn", "dask-ml", "faiss-cpu")


def environment() -> dict[str, Any]:
    """Describe versions, machine and commit, as every JSON object of a benchmark carries them."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {"versions": versions, "machine": _machine(), "commit": _commit()}


def _machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        "system": platform.system(),
    }


def _commit() -> str:
    # Results written by an earlier benchmark do not make the code another.
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", "localkmeans_spark", "jobs", "benchmarks/*.py"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return commit + ("-dirty" if changed.strip() else "")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
