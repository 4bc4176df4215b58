"""Formats output for users: tables, progress, live views, and results."""
