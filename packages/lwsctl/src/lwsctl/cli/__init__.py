"""Implements the `lws` command, with one module per command in `commands/`.

It may import all packages, but no package may import it.
"""
