"""The servers of a process, and its agreement with replicas: health, metrics, listeners, leases."""
