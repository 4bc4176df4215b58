"""Provides a directory for PYTHONPATH, from which Python imports `sitecustomize` at startup."""
