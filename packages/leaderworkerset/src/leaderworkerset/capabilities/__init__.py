"""Capabilities beyond the upstream contract. Each one has a directory and a row in the table in `enabled.py`."""
