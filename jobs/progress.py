"""One line of progress on stderr, as the command line writes it, for the scripts here."""

from localkmeans_spark.cli.progress import say

__all__ = ["say"]
