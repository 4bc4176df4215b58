"""Intentional faults: programs, packets, disks, nodes and parts of the cluster that fail for a time, and recover."""
