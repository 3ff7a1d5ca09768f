"""Runs: from seeding over rounds to the last pass, and what they ask of the partitions."""
