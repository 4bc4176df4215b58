"""Defines invariants of revisions.

Every used key needs a revision with its content, and the current revision has the highest number.

In: the objects of the API server. Out: sentences. A key is the hash of the content (R-REV-8), so a revision with other
content under a key is an error, also if no group was built from it yet (docs/adr/0012).
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from tests.simulation.checks.facts import FOREIGN, Facts
from tests.simulation.cluster import NAMESPACE

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.gotypes.canonicaljson import canonical_json
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, PODS, STATEFULSETS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.leaderworkerset import revisions
from localkube.apiserver.storage.store import Change

CHECKED: Final = {resource.group_resource for resource in (STATEFULSETS, DEPLOYMENTS, PODS)}
"""The kinds whose keys are checked on each write."""


def without_content(facts: Facts, change: Change) -> Iterator[str]:
    """Yield an error if a StatefulSet or pod is written with a key that has no matching revision."""
    user, key = change.object, groupname.revision_key(change.object)
    if change.type == "DELETED" or change.key.resource not in CHECKED or change.key.namespace != NAMESPACE:
        return
    if not key or FOREIGN in meta.annotations(user) or not _is_current(facts, user) or _is_surplus(facts, user):
        return
    found = [
        revision
        for revision in _revisions(facts)
        if groupname.revision_key(revision) == key and labels.NAME in meta.labels(revision)
    ]
    if not found:
        yield f"{user['kind']} {meta.name(user)} has the key {key}, which no revision has"
    for revision in found:
        content = revisions.content_hash(canonical_json(revision.get("data")))
        if content != key:
            yield f"{meta.name(revision)} has the content {content} under the key {key} of {meta.name(user)}"


def misnumbered(facts: Facts) -> Iterator[str]:
    """Yield revisions with a number not less than the current number, in a stable state."""
    for keeper in _keepers(facts):
        key = groupname.revision_key(keeper)
        known = _revisions(facts)
        current = max(
            (revisions.revision_number(one) for one in known if groupname.revision_key(one) == key), default=0
        )
        yield from (
            f"{meta.name(one)} has the number {revisions.revision_number(one)}, the current revision {current}"
            for one in known
            if groupname.revision_key(one) != key and revisions.revision_number(one) >= current
        )


def _is_surplus(facts: Facts, user: JSONObject) -> bool:
    """Return whether an object belongs to a scaled-down group that is being deleted."""
    index = decimals.natural(groupname.group_label(user))
    return index is not None and all(index >= meta.spec(keeper).get("replicas", 0) for keeper in _keepers(facts))


def _keepers(facts: Facts) -> Iterator[JSONObject]:
    for resource in (STATEFULSETS, DEPLOYMENTS):
        for obj in facts.objects.get(resource.group_resource, {}).values():
            if (meta.controller_of(obj) or {}).get("kind") == LEADERWORKERSETS.kind and _is_current(facts, obj):
                yield obj


def _revisions(facts: Facts) -> list[JSONObject]:
    """Return the managed revisions, including the revision history."""
    known = facts.objects.get(CONTROLLER_REVISIONS.group_resource, {}).values()
    return [
        revision
        for revision in known
        if (meta.controller_of(revision) or {}).get("kind") == LEADERWORKERSETS.kind
        and revisions.revision_key(revision)
        and _is_current(facts, revision)
    ]


def _is_current(facts: Facts, obj: JSONObject) -> bool:
    """Return whether an object belongs to the existing LeaderWorkerSet, and is not being deleted.

    An object whose controller no longer exists does not belong to it. A slow StatefulSet controller can still create
    a pod for a deleted StatefulSet, which the garbage collector then deletes.
    """
    present = {meta.uid(lws) for lws in facts.objects.get(LEADERWORKERSETS.group_resource, {}).values()}
    controllers = facts.line(meta.uid(obj))[1:]
    between = list(takewhile(lambda uid: uid not in present, controllers))
    return not meta.is_deleting(obj) and len(between) < len(controllers) and facts.exist(between)
