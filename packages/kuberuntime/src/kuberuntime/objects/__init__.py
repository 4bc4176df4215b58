"""Provides pure functions for metadata, names, selectors, quantities, times and other values in objects."""
