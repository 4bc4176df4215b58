"""Reads the evidence of views: one list of Warning events, and one of records of recreations."""

from collections.abc import Sequence

from kuberuntime.client.requests import Selection
from kuberuntime.clock import SystemClock
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, CORE_EVENTS
from leaderworkerset.api import labels
from leaderworkerset.observation.lists import Lists
from leaderworkerset.views.events.evidence import Evidence, explained, wants_events
from leaderworkerset.views.groups import View


def warnings(namespace: str) -> Selection:
    """Select the Warning events of a namespace (empty: of all)."""
    return Selection(CORE_EVENTS, namespace, field_selector="type=Warning")


def records(namespace: str, name: str = "") -> Selection:
    """Select the records of recreations of one LeaderWorkerSet, or of all: revisions without a revision's label."""
    whose = f"{labels.NAME}={name}" if name else labels.NAME
    return Selection(CONTROLLER_REVISIONS, namespace, label_selector=f"{whose},!{labels.TEMPLATE_REVISION_HASH}")


async def with_evidence(lists: Lists, views: Sequence[View], namespace: str) -> list[View]:
    """Return the views with the evidence; events are listed only if something is not ready."""
    events = await _permitted(lists, warnings(namespace)) if wants_events(views) else []
    found = Evidence(events=events, records=await _permitted(lists, records(namespace)) if views else [])
    return explained(views, found, SystemClock().now())


async def _permitted(lists: Lists, selection: Selection) -> list[JSONObject]:
    """List objects; none if the user may not."""
    try:
        return await lists.all(selection)
    except ForbiddenError:
        return []
