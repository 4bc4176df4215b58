"""Causes that a kubelet reports: evictions and killed containers."""
