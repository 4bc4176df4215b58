"""Builds the patches of `lws rollout undo`, `pause`, `resume` and `restart`.

The input is the LeaderWorkerSet, and other inputs of the subcommand. The output is a JSON patch or a merge patch, or
None without changes. Each patch contains the resource version that was read, so that it fails if the object has
changed since then.
"""

from datetime import datetime
from typing import Final

from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.decisions.revisioncontent import COVERED_BY_REVISIONS, RevisionEntry, revision_content
from leaderworkerset.decisions.rolloutsteps import rollout_position
from lwsctl.model.leaderworkerset import View

RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
"""The pod template annotation with which `kubectl rollout restart` creates a new revision."""


class PausedError(ValueError):
    """Raised if the rollout is paused, because a template change would not update any group."""


def is_paused(lws: JSONObject) -> bool:
    """Return whether the rollout is paused."""
    return labels.PAUSED_PARTITION in meta.annotations(lws)


def restore_patch(lws: JSONObject, entry: RevisionEntry) -> list[JSONObject]:
    """Return the JSON patch that restores a revision, and its recorded change cause."""
    saved = revision_content(entry)
    fields = [
        {"op": "add", "path": f"/spec/{name}", "value": saved[name]} for name in COVERED_BY_REVISIONS if name in saved
    ]
    annotations = {name: value for name, value in meta.annotations(lws).items() if name != labels.CHANGE_CAUSE}
    annotations |= {labels.CHANGE_CAUSE: entry.cause} if entry.cause else {}
    return [_version_test(lws), *fields, {"op": "add", "path": "/metadata/annotations", "value": annotations}]


def pause_patch(view: View, statefulset: JSONObject | None) -> JSONObject | None:
    """Return the merge patch that blocks later changes, and updates of all groups without the current revision.

    The partition is raised to the progress of the rollout. Groups above the partition are unchanged, and groups below
    it keep the old revision. The previous partition is recorded. If no rollout is in progress, the partition blocks
    all groups.
    """
    lws = view.object
    if is_paused(lws):
        return None
    before = partition(lws)
    annotations = {labels.PAUSED_PARTITION: str(before)}
    return _with_partition(lws, max(_lowest_partition(view, statefulset), before), annotations)


def resume_patch(lws: JSONObject) -> JSONObject | None:
    """Return the merge patch that restores the previous partition, or 0 if the recorded value is invalid."""
    if not is_paused(lws):
        return None
    remembered = decimals.natural(meta.annotations(lws)[labels.PAUSED_PARTITION])
    return _with_partition(lws, remembered or 0, {labels.PAUSED_PARTITION: None})


def restart_patch(lws: JSONObject, now: datetime) -> JSONObject:
    """Return the merge patch that creates a new revision without other changes.

    Raise `PausedError` if it is paused.
    """
    if is_paused(lws):
        raise PausedError(f"the rollout of {meta.name(lws)} is paused")
    template = meta.spec(lws).get("leaderWorkerTemplate") or {}
    stamp = {"metadata": {"annotations": {RESTARTED_AT: timestamps.render(now)}}}
    names = ("leaderTemplate", "workerTemplate") if template.get("leaderTemplate") else ("workerTemplate",)
    return _with_version_test(lws, {"spec": {"leaderWorkerTemplate": dict.fromkeys(names, stamp)}})


def partition(lws: JSONObject) -> int:
    """Return the partition of the rollout strategy."""
    strategy = meta.spec(lws).get("rolloutStrategy") or {}
    return int((strategy.get("rollingUpdateConfiguration") or {}).get("partition") or 0)


def _lowest_partition(view: View, statefulset: JSONObject | None) -> int:
    """Return the lowest partition that updates no additional groups."""
    if statefulset is None or not view.is_updating:
        return view.desired
    key = groupname.revision_key(statefulset)
    current = {group.index for group in view.groups if group.revision == key}
    updated = view.desired
    while updated - 1 in current:
        updated -= 1
    return max(updated, rollout_position(statefulset).partition) or view.desired


def _with_partition(lws: JSONObject, value: int, annotations: JSONObject) -> JSONObject:
    strategy = {"rollingUpdateConfiguration": {"partition": value}}
    return _with_version_test(lws, {"metadata": {"annotations": annotations}, "spec": {"rolloutStrategy": strategy}})


def _with_version_test(lws: JSONObject, change: JSONObject) -> JSONObject:
    return change | {"metadata": {"resourceVersion": meta.resource_version(lws)} | meta.metadata(change)}


def _version_test(lws: JSONObject) -> JSONObject:
    """Return the patch operation because of which the API server rejects the patch if the object has changed."""
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version(lws)}
