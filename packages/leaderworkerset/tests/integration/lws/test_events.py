"""Tests events and conditions for users (contract 8.3 and section 9)."""

from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, revision_of

from kuberuntime.objects import meta


async def test_creation_records_events(space: LiveScenario) -> None:
    """Creation records events (R-LSTS-7, R-WSTS-2, R-REV-10, R-STAT-10)."""
    await space.bring_up(lws(replicas=2, size=2))

    def are_told(state: State) -> None:
        key = revision_of(state.statefulsets["web"])
        created = f"Creating revision with key {key} for a newly created LeaderWorkerSet"
        assert state.notes("CreatingRevision") == [created]
        progressing = state.notes("GroupsProgressing")
        assert progressing.count("Created leader statefulset web") == 1
        for leader in ("web-0", "web-1"):
            assert progressing.count(f"Created worker statefulset for leader pod {leader}") == 1
        assert "All replicas are ready, with 2 groups ready of total 2 groups" in state.notes("AllGroupsReady")

    state = await space.until(are_told)
    own = [event for event in state.events.values() if event["reportingController"] == "leaderworkerset"]
    assert {event["type"] for event in own} == {"Normal"}
    assert {event["regarding"]["uid"] for event in own} == {meta.uid(state.leaderworkersets["web"])}
    assert all(meta.name(event).startswith("web.") for event in own)
    assert all(event["reportingInstance"].startswith("leaderworkerset-") for event in own)
    workers = [event for event in own if event["note"].startswith("Created worker")]
    assert {event["related"]["name"] for event in workers} == {"web-0", "web-1"}


async def test_update_records_events(space: LiveScenario) -> None:
    """An update records events (R-LSTS-7, R-REV-11, R-STAT-10)."""
    await space.bring_up(lws(replicas=2, size=2))
    await space.edit_template(workerTemplate=pod_template("app:2"))
    await space.settled()

    def are_told(state: State) -> None:
        updating = state.notes("GroupsUpdating")
        assert "Updating replica 1" in updating
        assert "Updating replica 0" in updating
        assert any(note.startswith("Rolling Upgrade is in progress, with ") for note in updating)
        assert "All replicas are ready, with 2 groups ready of total 2 groups" in state.notes("AllGroupsReady")

    await space.until(are_told)


async def test_statefulset_events_are_equal_on_both_clusters(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=2, size=2))
    await space.scale(1)

    def are_reported(state: State) -> None:
        notes = {event["note"] for event in state.events.values() if event["regarding"]["kind"] == "StatefulSet"}
        assert {
            "create pod web-1 in statefulset web successful",
            "create pod web-1-1 in statefulset web-1 successful",
            "delete pod web-1 in statefulset web successful",
        } <= {note.lower() for note in notes}  # 1.34 writes "create"

    await space.until(are_reported)


async def test_rejection_by_the_api_server_is_an_event(space: LiveScenario) -> None:
    """A LeaderWorkerSet whose template StatefulSets reject recovers after a correction (R-LSTS-7)."""
    broken = pod_template()
    broken["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "name": "Not A Port Name"}]
    await space.create(lws(replicas=1, size=1, template={"workerTemplate": broken}))

    def is_told(state: State) -> None:
        notes = state.notes("FailedCreate")
        assert notes
        assert notes[0].startswith("Failed to create leader statefulset web: ")
        assert "Not A Port Name" in notes[0]

    state = await space.until(is_told)
    assert not state.statefulsets
    await space.replace_worker_template(pod_template())
    await space.settled()


async def test_creation_sets_conditions(space: LiveScenario) -> None:
    """Creation sets conditions (R-STAT-8, R-STAT-11, R-STAT-12, R-STAT-16, Q-4, N-ST-11)."""
    await space.create(lws(replicas=1, size=2, gated=True))

    def is_progressing(state: State) -> None:
        found = meta.find_condition(state.leaderworkersets["web"], "Progressing")
        assert found is not None
        assert (found["status"], found["reason"]) == ("True", "GroupsProgressing")
        assert found["message"] == "Replicas are progressing"
        assert state.pods.keys() == {"web-0", "web-0-1"}
        assert {meta.status(pod).get("phase") for pod in state.pods.values()} == {"Running"}

    await space.until(is_progressing)
    await space.release("web-0", "web-0-1")
    state = await space.settled()
    found = {
        one["type"]: (one["status"], one["message"]) for one in meta.status(state.leaderworkersets["web"])["conditions"]
    }
    assert found == {
        "Progressing": ("False", "Replicas are progressing"),
        "Available": ("True", "All replicas are ready"),
        "Degraded": ("False", "No replica has exhausted its restart budget"),
    }


async def test_group_that_becomes_unready_changes_conditions(space: LiveScenario) -> None:
    """A change of conditions does not recreate the group (R-STAT-6, R-STAT-8)."""
    await space.create(lws(replicas=2, size=2, gated=True))
    async with space.releasing():
        before = await space.settled()
    await space.close("web-1-1")

    def is_progressing(state: State) -> None:
        obj = state.leaderworkersets["web"]
        assert meta.is_condition_true(obj, "Progressing")
        assert not meta.is_condition_true(obj, "Available")
        assert meta.status(obj)["readyReplicas"] == 1

    await space.until(is_progressing)
    await space.release("web-1-1")
    assert (await space.settled()).uids("web") == before.uids("web")
