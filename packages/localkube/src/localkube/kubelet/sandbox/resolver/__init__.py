"""A directory for PYTHONPATH. Python automatically imports `sitecustomize` from it at startup."""
