"""Implements the flight recorder, which preserves group failures after pods are deleted (docs/adr/0019)."""
