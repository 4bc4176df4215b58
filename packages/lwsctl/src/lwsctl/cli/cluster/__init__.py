"""Embedded clusters with LeaderWorkerSets: their directories on this machine, and connections to clusters."""
