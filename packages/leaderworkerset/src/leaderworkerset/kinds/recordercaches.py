"""Declares the recorder's caches.

They contain the same objects as the controllers' caches, with additional pod fields.
"""

from typing import Final

from kuberuntime.cache.projection import Projection
from leaderworkerset.controllers import cachedfields, indexes
from leaderworkerset.controllers.caches import Cache

POD: Final = Projection(
    "spec.initContainers[].name",
    "spec.initContainers[].restartPolicy",
    *(
        f"status.{containers}[].{field}"
        for containers in ("containerStatuses", "initContainerStatuses")
        for field in ("containerID", "state", "lastState")
    ),
)
"""The times and IDs of container terminations, and sidecars, in addition to the fields for the controllers."""


POD_CACHE: Final = Cache(indexes.POD_CACHE.selection, keep=cachedfields.same_fields(POD))
CACHES: Final = (POD_CACHE, indexes.REVISION_CACHE, indexes.LEADERWORKERSET_CACHE)
