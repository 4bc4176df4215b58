"""Simulates the parts of Kueue's webhooks and controller that affect LeaderWorkerSets."""
