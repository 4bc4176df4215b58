"""Explains why a LeaderWorkerSet is not in its desired state: the root cause, evidence and next steps. Pure."""
