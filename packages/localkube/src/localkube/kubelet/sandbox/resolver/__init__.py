"""A directory for PYTHONPATH: Python imports `sitecustomize` from it automatically when a program starts."""
