"""LeaderWorkerSet: groups of pods (one leader, its workers) that start, roll, fail and scale as one."""

__version__ = "0.2.0"
