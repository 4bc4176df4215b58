"""The accelerators of this machine: detection, assignment to containers, monitoring."""
