"""Runs containers: their executables, start, probes and stop, and commands in them."""
