"""Moves of whole groups off nodes that are under maintenance: which, and when (docs/adr/0023-moves-of-groups.md)."""
