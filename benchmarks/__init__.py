"""Benchmarks against the peers, run from the repository root: ``python -m benchmarks.compare``."""
