"""Reads, displays and diagnoses the sets in a cluster for commands."""
