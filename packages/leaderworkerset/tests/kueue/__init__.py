"""A stand-in of Kueue: the parts of its webhooks and its reconciler that affect LeaderWorkerSets."""
