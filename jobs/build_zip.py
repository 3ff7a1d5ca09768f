"""Build the zip that gives a cluster's workers this library: ``spark-submit --py-files``."""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from localkmeans_spark.cli.messages import user_errors
from localkmeans_spark.cli.session import build_zip

USAGE = "usage: python jobs/build_zip.py TARGET.zip"


def main(words: list[str]) -> None:
    """Build the zip named on the command line."""
    if words in (["--help"], ["-h"]):
        print(f"{__doc__}\n\n{USAGE}")
        return
    if len(words) != 1 or not words[0].endswith(".zip"):
        print(
            f"build_zip: error: one name that ends in .zip must be given. {USAGE}", file=sys.stderr
        )
        raise SystemExit(2)
    with user_errors("build_zip"):
        target = build_zip(Path(words[0]))
        print(f"{target}: {target.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main(sys.argv[1:])
