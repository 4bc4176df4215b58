"""Policies: what a field or annotation of a LeaderWorkerSet means for its groups, one module each, wherever it acts."""
