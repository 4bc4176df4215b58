"""The Kubernetes client: transport, watch, cache, workqueue, executor. It knows no LeaderWorkerSet."""
