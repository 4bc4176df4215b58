"""Causes that a kubelet reports: evictions, and containers that it killed."""
