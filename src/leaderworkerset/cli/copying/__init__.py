"""Files on their way between this machine and ranks, as tar archives."""
