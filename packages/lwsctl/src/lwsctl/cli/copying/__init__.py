"""Copies files between this machine and ranks, as tar archives."""
