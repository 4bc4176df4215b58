"""What a process serves and shares with its replicas: health, metrics, listeners, leases."""
