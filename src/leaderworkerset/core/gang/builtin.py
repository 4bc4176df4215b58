"""The built-in gate, for clusters without a gang scheduler: pods wait until their whole group fits (`gate.py`).

A group has no object of its own: a scheduling gate on its pods marks that it waits. A group of one pod needs no gate.
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.gang.gate import GATE, is_gated
from leaderworkerset.core.gang.provider import Provider, refuse_awaiting
from leaderworkerset.core.policies.edits import with_spec

NAME: Final = "built-in"
ALONE: Final = "1"
"""The size of a group that needs no gate."""


def errors(lws: LeaderWorkerSet) -> Sequence[FieldError]:
    """Refuse groups whose workers are created only after their leader runs."""
    return refuse_awaiting(lws, NAME)


def link(pod: JSONObject, _group: str) -> JSONObject:
    """Return the pod with the gate added to its own."""
    if meta.annotations(pod).get(labels.SIZE) == ALONE or is_gated(pod):
        return pod
    return with_spec(pod, {"schedulingGates": [*(meta.spec(pod).get("schedulingGates") or []), GATE]})


BUILT_IN: Final = Provider(name=NAME, suits=lambda _pod: True, is_taken=lambda _pod: False, link=link, errors=errors)
"""Every scheduler ignores gated pods, and there is no object that a user could name."""
