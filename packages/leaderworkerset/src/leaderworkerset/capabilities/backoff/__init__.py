"""Recreates groups that fail repeatedly with increasing delays, up to a limit (`restart-backoff` and others)."""
