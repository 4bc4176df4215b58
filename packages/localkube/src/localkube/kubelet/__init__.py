"""Pods as local processes: sandboxes, volumes, probes, logs."""
