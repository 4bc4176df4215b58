"""The failure of a group that hangs.

In: what the recorder's side wrote of a hang (`recording/progressfollower.py`). Out: the failure, for the record of a
recreation.
"""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import labels, progressnotes, runsettings
from leaderworkerset.api.recreationrecord import Failure
from leaderworkerset.core.policies.failures import Fault, Members
from leaderworkerset.core.policies.policy import LiveGroup


def of_hang(obj: JSONObject, leader: JSONObject) -> Failure | None:
    """Return the failure of the rank that is silent the longest, of a group that hangs; None unless its set recreates such."""
    settings = runsettings.read(meta.annotations(obj))
    hang = progressnotes.hang_of(meta.annotations(leader).get(labels.HANG, "")) if settings.recreates else None
    if hang is None:
        return None
    blamed, timeout = hang.blamed, settings.timeout
    waits = f", waits for {blamed.waits}" if blamed.waits else ""
    length = 0 if timeout is None else int(timeout.total_seconds())
    return Failure(pod=blamed.pod, uid=UID(blamed.uid), what=f"no progress for {length} s{waits}")


def find(group: LiveGroup, _members: Members) -> Fault:
    """Return the failure of a group that hangs."""
    return Fault(failure=of_hang(group.obj, group.leader))
