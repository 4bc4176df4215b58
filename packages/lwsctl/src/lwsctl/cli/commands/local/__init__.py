"""Implements commands that start, stop and list local clusters."""
