"""A package, so that its cluster is stopped after its last test. It is not named operator like a module of Python."""
