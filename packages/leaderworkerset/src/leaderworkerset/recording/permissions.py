"""The permissions of the recorder on Kubernetes, besides those of its caches; only for managers that record.

It patches pods to keep the progress of leaders there. It reads no Secrets. A role cannot restrict ConfigMaps to a
label, nor the creation of one to a name.
"""

from typing import Final

from kuberuntime.objects.resources import CONFIG_MAPS, CONTROLLER_REVISIONS, CORE_EVENTS, PODS
from kuberuntime.policyrules import Permission
from leaderworkerset.api.resources import LEADERWORKERSETS

RECORDING: Final = (
    Permission(PODS, ("get",), "log"),
    Permission(PODS, ("patch",)),
    Permission(CONFIG_MAPS, ("create", "delete", "list", "patch")),
    Permission(CORE_EVENTS, ("list",)),
    Permission(CONTROLLER_REVISIONS, ("list",)),
    Permission(LEADERWORKERSETS, ("get",)),
)
