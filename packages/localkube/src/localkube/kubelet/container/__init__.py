"""Runs containers: finds executables, starts and stops processes, and runs probes and commands."""
