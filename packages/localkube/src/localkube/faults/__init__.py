"""Fault injection: processes, packets, disks, nodes and cluster components that fail for a time, and recover."""
