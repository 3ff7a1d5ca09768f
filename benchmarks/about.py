"""What all benchmarks share: their flags, and rows of results that tell where they come from."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("pyspark", "numpy", "scipy", "pyarrow", "scikit-learn", "faiss-cpu")


def parser(doc: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser with a flag for each default, and the flags that all benchmarks have.

    ``n``, ``d``, ``k`` are rows, features, clusters; ``driver_memory`` is Spark's.
    """
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in ({"cores": os.cpu_count(), "driver_memory": "8g"} | defaults).items():
        flag = "--" + name.replace("_", "-")
        made.add_argument(flag, type=type(value), default=value, help="(default: %(default)s)")
    made.add_argument("--json", type=Path, help="append figures here, one JSON object a line")
    return made


def environment() -> dict[str, Any]:
    """Describe versions, machine, commit and date, as every row of results carries them."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    machine = {"processor": _processor(), "cores": os.cpu_count(), "memory_gb": memory}
    machine["system"] = platform.system()
    date = datetime.now(timezone.utc).date().isoformat()
    return {"versions": versions, "machine": machine, "commit": _commit(), "date": date}


def keep(path: Path | None, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to a file, one JSON object a line, each with its environment."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as out:
            out.writelines(json.dumps({**row, **environment()}) + "\n" for row in rows)


def _commit() -> str:
    # Results written by an earlier benchmark do not make the code another.
    code = ["localkmeans_spark", "jobs", "benchmarks/*.py"]
    changed = _git("status", "--porcelain", "--", *code)
    return _git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
