"""LeaderWorkerSets under the real Kueue, if it was built."""
