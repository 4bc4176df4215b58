"""A directory for PYTHONPATH: Python imports `sitecustomize` from it by itself when a program starts."""
