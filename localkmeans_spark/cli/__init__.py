"""The command ``localkmeans`` with its sub-commands ``fit``, ``predict`` and ``diagnose``."""
