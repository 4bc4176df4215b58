"""Capabilities beyond upstream's contract: one folder and one row of the table in `enabled.py` for each."""
