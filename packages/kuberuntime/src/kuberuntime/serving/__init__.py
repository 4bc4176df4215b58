"""The servers of a process, and leader election: health, metrics, listeners, leases."""
