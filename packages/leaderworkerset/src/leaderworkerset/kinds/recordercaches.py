"""Declares the recorder's caches.

They contain the same objects as the controllers' caches, with additional pod fields.
"""

from typing import Final

from kuberuntime.cache.projection import Projection
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.controllers import indexes
from leaderworkerset.controllers.caches import Cache
from leaderworkerset.controllers.spec import AdditionalCaches
from leaderworkerset.recording.permissions import RECORDING

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


def _pod(_obj: JSONObject) -> Projection:
    return POD


POD_CACHE: Final = Cache(indexes.POD_CACHE.what, keep=_pod)
RECORDER: Final = AdditionalCaches(
    caches=(POD_CACHE, indexes.REVISION_CACHE, indexes.LEADERWORKERSET_CACHE), extra_permissions=RECORDING
)
