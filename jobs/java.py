"""Print the home of the Java that the commands use: ``export JAVA_HOME=$(python jobs/java.py)``."""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from localkmeans_spark.cli.messages import user_errors

if __name__ == "__main__":
    with user_errors("java"):
        from localkmeans_spark.cli.session import ensure_java

        print(ensure_java())
