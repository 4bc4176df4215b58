"""Repeated failures recreate a group with growing delays, up to a limit (`restart-backoff` and others)."""
