"""Copies files to and from ranks as tar archives."""
