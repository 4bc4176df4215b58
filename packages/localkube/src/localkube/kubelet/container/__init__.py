"""Containers: their programs, start, probes and stop, and commands in them."""
