"""Recreates repeatedly failing groups with increasing delays, up to a limit (`restart-backoff` and others)."""
