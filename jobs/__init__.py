"""Command lines around localkmeans_spark; each file that ends in a ``main`` is one of them."""
