"""Tests which actions a page offers, and what prevents each action."""

import pytest
from tests import builders
from tests.unit.lwsctl.dashboard.test_pages import snapshot

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.dashboard import availableactions
from lwsctl.dashboard.actions import Verb
from lwsctl.model.leaderworkerset import view

OWNER = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1", "controller": True}


@pytest.mark.parametrize(
    ("metadata", "verbs"),
    [
        ({}, "scale restart pause"),
        ({"annotations": {labels.PAUSED_PARTITION: "0"}}, "scale resume"),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, ""),
        ({"ownerReferences": [OWNER]}, ""),
    ],
)
def test_set_offers_the_actions_that_can_work(metadata: JSONObject, verbs: str) -> None:
    assert availableactions.set_actions(view(builders.leaderworkerset_object(metadata=metadata), [])) == verbs


def test_group_offers_to_recover_only_when_it_is_exhausted() -> None:
    lws = builders.leaderworkerset_object(replicas=1, size=1)
    pod = builders.leader_pod(lws, 0, key="new")
    (group,) = view(lws, [pod]).groups
    assert availableactions.group_actions(view(lws, [pod]), group) == [Verb.RESTART_GROUP]
    pod["metadata"].setdefault("annotations", {})[labels.GROUP_RESTART_BUDGET_EXHAUSTED] = "true"
    (group,) = view(lws, [pod]).groups
    assert availableactions.group_actions(view(lws, [pod]), group) == [Verb.RECOVER_GROUP]


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"verb": "scale", "groups": "0"}, "All 4 groups are deleted"),
        ({"verb": "scale", "groups": "3"}, "1 group of 4 is deleted"),
        ({"verb": "scale", "groups": "4"}, ""),
        ({"verb": "scale", "groups": "9"}, ""),
        ({"verb": "restart"}, "Each of 4 groups is deleted and recreated"),
        ({"verb": "undo"}, "Each of 4 groups is deleted and recreated"),
        ({"verb": "restart-group", "group": "2"}, "Group 2 is deleted and recreated"),
        ({"verb": "recover-group", "group": "2"}, "Group 2 is deleted and recreated"),
        ({"verb": "pause"}, ""),
        ({"verb": "resume"}, ""),
        ({"verb": "restart", "name": "nobody"}, ""),
        ({"verb": "scale-role", "name": "nobody", "role": "decode", "groups": "0"}, ""),
    ],
)
def test_action_names_what_it_ends(action: dict[str, object], words: str) -> None:
    lws = builders.leaderworkerset_object(replicas=4, size=1)
    place = {"namespace": lws["metadata"]["namespace"], "name": lws["metadata"]["name"]}
    found = availableactions.describe_stopped_groups(place | action, snapshot(view(lws, [])))
    assert found.startswith(words)
    assert bool(found) is bool(words)
