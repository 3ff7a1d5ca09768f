"""Rows of a DataFrame → checked, cached blocks of numbers, and jobs on them."""
