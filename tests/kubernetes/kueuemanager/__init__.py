"""LeaderWorkerSets under the real Kueue, where it was built."""
