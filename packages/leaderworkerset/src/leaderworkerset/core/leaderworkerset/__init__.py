"""Reconciles the leader StatefulSet, revisions, Services and status of a LeaderWorkerSet."""
