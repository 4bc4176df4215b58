"""Runs the shipped processes with each setting."""
