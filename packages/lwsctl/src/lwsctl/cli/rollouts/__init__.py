"""Contains shared code of the rollout commands, which read and change a LeaderWorkerSet."""
