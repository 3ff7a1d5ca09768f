"""Arithmetic on arrays: no Spark here, every function can be tested in milliseconds."""
