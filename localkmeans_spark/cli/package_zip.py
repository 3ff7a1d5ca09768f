"""The package as a zip, for Python workers that lack it."""

from __future__ import annotations

import zipfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def build_zip(target: Path) -> Path:
    """Write the package to ``target`` and return it.

    The same sources give the same bytes: sorted names, one fixed date, stored uncompressed (the
    result of compression depends on the zlib at hand).
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(target.name + ".part")
    sources = [path for path in PACKAGE.rglob("*") if path.is_file()]
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(path for path in sources if "cache" not in str(path.parent.name)):
            name = path.relative_to(PACKAGE.parent).as_posix()
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, wherever it is built
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    draft.replace(target)
    return target
