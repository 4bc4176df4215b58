"""Decisions about a LeaderWorkerSet: its leader StatefulSet, revisions, services and status."""
