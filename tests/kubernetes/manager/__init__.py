"""A package, so that its cluster is stopped after its last test."""
