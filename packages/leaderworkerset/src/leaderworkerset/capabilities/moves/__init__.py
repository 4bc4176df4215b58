"""Moves groups off nodes under maintenance: selection of nodes, pods and groups (docs/adr/0023)."""
