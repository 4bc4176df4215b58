"""Finds causes that a kubelet reports, such as evictions and killed containers."""
