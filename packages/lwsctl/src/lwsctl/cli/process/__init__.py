"""Manages the process of a command, with lazy imports, garbage collection, and exit."""
