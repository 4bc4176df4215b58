"""Runs pods on one machine, in Linux namespaces or, if they are not available, as plain processes."""
