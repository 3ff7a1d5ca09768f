"""What are the clusters like? ``spark-submit jobs/describe.py ...`` (see --help)."""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from localkmeans_spark.cli.main import script

if __name__ == "__main__":
    script("describe")
