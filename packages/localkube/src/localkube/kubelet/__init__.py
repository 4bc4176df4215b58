"""Runs pods as local processes, with sandboxes, volumes, probes and logs."""
