"""How the functions that bound the recreation of groups are called in a `World`."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from tests import builders
from tests.property.growth.shapes import World

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset import exhausted
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts
from leaderworkerset.core.restarts import failure, lost, settings, unseen
from leaderworkerset.core.restarts.settings import DEFAULTS

Recipe: TypeAlias = Callable[[World], object]


def _stuck(world: World) -> lost.Stuck:
    pods = [_lost(pod) for pod in world.members.pods]
    return lost.Stuck(lws=world.posted, pods=pods, grace=timedelta(), now=builders.NOW)


def _lost(pod: JSONObject) -> JSONObject:
    deleted = {"deletionTimestamp": "2026-03-01T11:00:00Z"}
    return pod | {"metadata": pod["metadata"] | deleted, "spec": pod["spec"] | {"nodeName": "n"}}


def _record(group: GroupFacts) -> JSONObject:
    annotations = {labels.RECREATION_STATE: "exhausted", labels.RECREATED_LEADER: group.uid}
    own = {labels.GROUP_INDEX: group.group_index}
    return {"metadata": {"name": f"{group.leader}-recreations", "labels": own, "annotations": annotations}}


def _given_up(world: World) -> Sequence[int]:
    return exhausted.groups([_record(group) for group in world.groups], {group.leader: group for group in world.groups})


GIVEN_UP: Final[Mapping[str, Recipe]] = {
    "exhausted.abandoned": lambda w: exhausted.abandoned([_record(group) for group in w.groups], {}, 1),
    "exhausted.groups": _given_up,
    "exhausted.is_exhausted": lambda w: exhausted.is_exhausted(w.leader),
    "exhausted.message": lambda w: exhausted.message(range(1, 2 + w.n)),
    "exhausted.with_condition": lambda w: exhausted.with_condition(w.lws.status.conditions, [1], 1, builders.NOW),
}

RESTARTS: Final[Mapping[str, Recipe]] = {
    "failure.describe": lambda w: failure.describe(w.leader),
    "failure.in_brackets": lambda w: failure.in_brackets(w.text),
    "lost.nodes_of": lambda w: lost.nodes_of(_stuck(w)),
    "lost.release": lambda w: lost.release(_stuck(w), {"n": None}),
    "settings.Range.holds": lambda w: settings.RESETS.holds(w.n),
    "settings.Range.read": lambda w: settings.RESETS.read(w.text),
    "settings.RestartSettings.delay": lambda w: DEFAULTS.delay(w.n),
    "settings.RestartSettings.exceeds": lambda w: DEFAULTS.exceeds(w.n),
    "unseen.whole_since": lambda w: unseen.whole_since(w.posted),
    "unseen.lost": lambda w: unseen.lost("2099-01-01T00:00:00Z", w.worker_sets[-1], w.workers),
    "settings.RestartSettings.of": lambda w: DEFAULTS.of({labels.RESUME_GROUP_RESTARTS: w.text} | w.labels),
    "settings.RestartSettings.remembers": lambda _: DEFAULTS.remembers,
    "settings.errors": lambda w: list(settings.errors(w.labels, w.labels)),
}
