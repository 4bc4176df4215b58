"""Groups that fail repeatedly are recreated with growing delays, and only so often (`restart-backoff` and others)."""
