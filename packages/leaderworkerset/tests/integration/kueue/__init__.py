"""Tests LeaderWorkerSets under Kueue's rules, on both clusters."""
