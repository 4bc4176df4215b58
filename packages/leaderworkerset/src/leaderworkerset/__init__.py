"""LeaderWorkerSet: groups of pods (one leader and its workers) that are started, updated and scaled as a unit."""

__version__ = "0.2.0"
