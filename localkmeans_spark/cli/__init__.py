"""The command ``localkmeans`` with its sub-commands (see :mod:`localkmeans_spark.cli.commands`)."""
