"""The library's version: read by the package, the build and saved models."""

__version__ = "0.2.0.dev0"
