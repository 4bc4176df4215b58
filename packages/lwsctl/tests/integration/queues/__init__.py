"""Tests commands for LeaderWorkerSets that wait for a Kueue queue."""
