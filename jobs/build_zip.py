"""Build the zip that gives a cluster's workers this library: ``spark-submit --py-files``."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("localkmeans_spark", "jobs")
_NOT_SHIPPED = {"__pycache__", ".ruff_cache", ".mypy_cache", ".pytest_cache"}


def build_zip(target: Path) -> Path:
    """Write both packages to ``target``, side by side at the root of the zip.

    The same sources give the same bytes: sorted names, one fixed date, stored uncompressed (the
    result of compression depends on the zlib at hand).

    Parameters
    ----------
    target : Path
        The file to write; directories above it are made.

    Returns
    -------
    Path
        ``target``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(target.name + ".part")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
        for path in _sources():
            name = path.relative_to(REPOSITORY).as_posix()
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, wherever it is built
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    draft.replace(target)
    return target


def _sources() -> list[Path]:
    found = (path for package in PACKAGES for path in (REPOSITORY / package).rglob("*"))
    return sorted(path for path in found if path.is_file() and _NOT_SHIPPED.isdisjoint(path.parts))


def main() -> None:
    """Build the zip named on the command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: python jobs/build_zip.py TARGET.zip")
    target = build_zip(Path(sys.argv[1]))
    print(f"{target}: {target.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
