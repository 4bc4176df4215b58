"""Tests that quirks of the Go controller that clients rely on are preserved, on both clusters."""

import pytest
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, shows

from kuberuntime.errors import InvalidError
from kuberuntime.objects import meta
from kuberuntime.objects.resources import SERVICES
from leaderworkerset.api.resources import LEADERWORKERSETS

NOTE = "example.com/note"


def is_available(state: State) -> None:
    """Check that the LeaderWorkerSet is available in its latest generation."""
    obj = state.leaderworkersets["web"]
    assert meta.status(obj)["observedGeneration"] == meta.generation(obj)
    assert meta.is_condition_true(obj, "Available")


async def test_annotations_reach_leader_set_and_new_worker_sets(space: LiveScenario) -> None:
    """The leader StatefulSet is updated. Worker StatefulSets retain their initial annotations.

    Rules Q-21, R-LSTS-2, R-WSTS-3.
    """
    await space.bring_up(lws(replicas=1, size=2, annotations={NOTE: "old"}))
    await space.patch({"metadata": {"annotations": {NOTE: "new"}}})
    state = await space.until(shows(lambda state: meta.annotations(state.statefulsets["web"])[NOTE], "new"))
    assert meta.annotations(state.statefulsets["web-0"])[NOTE] == "old"
    assert NOTE not in meta.annotations(state.pods["web-0"])


async def test_special_characters_in_annotations_reach_statefulsets(space: LiveScenario) -> None:
    """API servers parse an apply as YAML, which rejects some JSON characters and folds lines at others."""
    text = "a\x7f b\x85 c\x9b d\u2028 e\ufeff f\uffff é😀"
    await space.bring_up(lws(replicas=1, size=2, annotations={NOTE: text}))
    assert meta.annotations(space.state.statefulsets["web"])[NOTE] == text
    assert meta.annotations(space.state.statefulsets["web-0"])[NOTE] == text


async def test_service_of_the_user_is_not_changed(space: LiveScenario) -> None:
    """The Service is used because it has the expected name. It is neither adopted nor changed (Q-27, R-SVC-4)."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"clusterIP": "None", "selector": {"own": "one"}},
    }
    before = await space.create(service, SERVICES)
    await space.create(lws(replicas=1, size=2))
    await space.until(is_available)

    assert (await space.get(SERVICES, "web"))["spec"] == before["spec"]
    assert meta.controller_of(await space.get(SERVICES, "web")) is None


async def test_current_restart_policy_applies_to_older_revisions(space: LiveScenario) -> None:
    """A group that the partition blocks is not recreated after the policy changes to `None` (Q-14)."""
    await space.create(lws(replicas=1, size=2, rollout={"partition": 1}))
    await space.until(is_available)
    edited = await space.edit_template(restartPolicy="None")
    old = meta.uid(space.state.pods["web-0"])
    await space.until(
        shows(lambda state: meta.status(state.leaderworkersets["web"])["observedGeneration"], meta.generation(edited))
    )
    await space.fail("web-0-1")
    await space.until(
        shows(lambda state: meta.status(state.pods["web-0-1"])["containerStatuses"][0]["restartCount"], 1)
    )
    await space.until(is_available)

    assert meta.uid(space.state.pods["web-0"]) == old


async def test_empty_startup_policy_is_rejected_and_strategy_filled(space: LiveScenario) -> None:
    """Typed clients send both fields, with empty values (Q-33)."""
    with pytest.raises(InvalidError, match="startupPolicy"):
        await space.create(lws(startupPolicy=""))

    obj = lws(replicas=0)
    created = await space.create(obj | {"spec": obj["spec"] | {"rolloutStrategy": {"type": ""}}})

    assert created["spec"]["rolloutStrategy"]["type"] == "RollingUpdate"


async def test_percent_sign_in_an_error_is_kept(space: LiveScenario) -> None:
    """Event messages are not format strings (Q-11)."""
    template = pod_template()
    template["spec"]["containers"][0]["env"] = [{"name": "100%d", "value": ""}, {"name": "a=b", "value": "%s"}]
    await space.create(lws(replicas=1, size=1, template={"workerTemplate": template}))

    def is_told(state: State) -> None:
        notes = [str(event.get("note")) for event in state.events.values() if event.get("type") == "Warning"]
        assert any("a=b" in note and "MISSING" not in note for note in notes)

    await space.until(is_told)
    assert (await space.get(LEADERWORKERSETS, "web"))["spec"]["replicas"] == 1
