"""An embedded cluster with LeaderWorkerSets, and where it lives on this machine."""
