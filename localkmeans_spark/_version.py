"""The library's version: read by the package, the build and saved models."""

__version__ = "0.1.0.dev0"
