"""Injects faults. Processes, packets, disks, nodes and cluster components fail temporarily, and recover."""
