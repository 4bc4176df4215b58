"""Capabilities in addition to the upstream contract. Each has a folder and a row of the table in `enabled.py`."""
