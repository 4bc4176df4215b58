"""A package (and not called operator, which is a module of Python), so that its cluster ends with the last of its tests."""
