"""Faults injected into fits on a real standalone cluster: ``python -m tests.soak.run --help``."""
