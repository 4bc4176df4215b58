"""Code that the verbs of a rollout share: their LeaderWorkerSet, and its change."""
