"""Commands for LeaderWorkerSets that wait for a queue of Kueue."""
