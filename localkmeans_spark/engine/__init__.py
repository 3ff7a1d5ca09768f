"""The fit on Spark: blocks, machines, rounds, seeding."""
