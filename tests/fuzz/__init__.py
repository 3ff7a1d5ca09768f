"""Random tables and parameters against a slow reference."""
