"""The process of a command: lazy imports, garbage collection, and exit."""
