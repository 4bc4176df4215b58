"""Moves groups from nodes under maintenance (docs/adr/0023)."""
