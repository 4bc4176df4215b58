"""Converts snapshots to the HTML fragments of pages. Pure."""
