"""Serves health checks and metrics, and performs leader election."""
