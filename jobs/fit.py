"""Cluster a table: ``spark-submit jobs/fit.py ...`` (see --help)."""

import sys
from pathlib import Path

# Run as a script: the repository is not on the path yet. Databricks runs it without a file's name.
if __package__ in (None, "") and "__file__" in globals():
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from localkmeans_spark.cli.main import script

if __name__ == "__main__":
    script("fit")
