"""Adds reasons and recorded failures to a view, from events and recreation records."""
