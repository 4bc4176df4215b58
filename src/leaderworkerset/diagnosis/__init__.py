"""Why a LeaderWorkerSet is not as it is wanted: one root cause, its evidence, the next step. Pure: objects in, values out."""
