"""Builds the events of in-place updates, which include the reasons why groups are not updated in place."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event
from leaderworkerset.core import decisionevents


def updating_in_place(obj: JSONObject, leader: str, group: int | None) -> Event:
    """Return the event for an in-place update of a group (docs/adr/0024-update-in-place.md)."""
    note = f"Updating the group of leader pod {leader} in place"
    return decisionevents.of_group(decisionevents.updating(obj, note), "Updating groups {numbers} in place", group)


def not_in_place(obj: JSONObject, field: str, *, is_held: bool) -> Event:
    """Return the event for a revision that prevents in-place updates, so that groups are recreated or delayed."""
    what = "holds the rollout" if is_held else "groups are recreated"
    note = f"Cannot update groups in place, {what}: {field} differs and cannot be changed in a running pod"
    return Event(
        "Warning" if is_held else "Normal",
        decisionevents.GROUPS_UPDATING,
        "Update",
        note,
        decisionevents.reference(obj),
    )


def resize_failed(obj: JSONObject, pod: JSONObject) -> Event:
    """Return the event for a pod resize that the API server rejected."""
    return decisionevents.failed_update(obj, f"Cannot resize pod {meta.name(pod)}: {{error}}", pod)


def resize_refused(obj: JSONObject, pod: JSONObject, why: str, *, is_held: bool) -> Event:
    """Return the event for a pod that the kubelet cannot resize. Its group is recreated or remains unchanged."""
    what = "its group is not changed" if is_held else "its group is recreated"
    note = f"Cannot resize pod {meta.name(pod)}, {what}: {why}"
    return Event(
        "Warning",
        decisionevents.GROUPS_UPDATING,
        "Update",
        note,
        decisionevents.reference(obj),
        decisionevents.reference(pod),
    )
