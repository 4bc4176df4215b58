"""Defines the additional permissions of the recorder, which are granted only if recording is enabled.

It patches pods to store the progress of leaders. It does not read Secrets. A role cannot restrict ConfigMaps by label,
or their creation by name.
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
