"""Reads, displays and diagnoses the sets of a cluster for commands."""
