"""The session and the one-line ends of :mod:`localkmeans_spark.cli`, for the scripts here."""

from localkmeans_spark.cli.failures import user_errors
from localkmeans_spark.cli.session import open_session

__all__ = ["open_session", "user_errors"]
