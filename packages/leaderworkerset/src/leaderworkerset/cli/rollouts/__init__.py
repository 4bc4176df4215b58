"""What the verbs of a rollout share: the LeaderWorkerSet that they act on, and its change."""
