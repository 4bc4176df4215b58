"""Converts changes to keys, keys to plans, and plans to writes."""
