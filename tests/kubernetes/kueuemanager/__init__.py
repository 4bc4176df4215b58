"""Tests LeaderWorkerSets with the real Kueue, if it was built."""
