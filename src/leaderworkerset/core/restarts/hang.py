"""Hangs: groups that are recreated because they make no progress, where their LeaderWorkerSet asks for it.

In: the leader pod with the annotation that the recorder's side wrote (`recording/progressfollower.py`), and the settings of its
set. Out: the failure of the rank that is silent the longest, which is handled as any other failure of a pod is.
"""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import labels, progressnotes, runsettings
from leaderworkerset.core.restarts.failure import Failure


def failure(obj: JSONObject, leader: JSONObject) -> Failure | None:
    """Return the failure of a group that hangs and shall be recreated, None if there is no such."""
    settings = runsettings.read(meta.annotations(obj))
    if not settings.recreates:
        return None
    hang = progressnotes.hang_of(meta.annotations(leader).get(labels.HANG, ""))
    if hang is None:
        return None
    blamed, timeout = hang.blamed, settings.timeout
    waits = f", waits for {blamed.waits}" if blamed.waits else ""
    length = 0 if timeout is None else int(timeout.total_seconds())
    return Failure(pod=blamed.pod, uid=UID(blamed.uid), what=f"no progress for {length} s{waits}")
