"""A stand-in of Kueue: its webhooks and its reconciler, as far as a LeaderWorkerSet meets them."""
