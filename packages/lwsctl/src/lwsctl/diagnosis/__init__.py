"""Why a LeaderWorkerSet is not in its desired state: one root cause, its evidence, the next step. Pure."""
