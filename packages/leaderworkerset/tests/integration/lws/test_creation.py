"""Tests the creation of LeaderWorkerSets. `tests/parity/test_recorded.py` compares all fields of their objects."""

from datetime import datetime

from tests.integration.clusters.objects import lws, pod_template, slow_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State, is_ready, revision_of, revisions_of

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES
from leaderworkerset.api import labels


async def test_groups_start_and_the_status_reports_them(space: LiveScenario) -> None:
    """Groups start, and the status reports them.

    Rules R-ARC-2, R-STAT-1, R-STAT-4, R-STAT-6 to R-STAT-8, R-STAT-11, R-STAT-15.
    """
    state = await space.bring_up(lws(replicas=2, size=3))
    status = meta.status(state.leaderworkersets["web"])
    available = next(one for one in status["conditions"] if one["type"] == "Available")
    assert (available["reason"], available["message"]) == ("AllGroupsReady", "All replicas are ready")
    assert "UpdateInProgress" not in {one["type"] for one in status["conditions"]}  # R-STAT-16


async def test_template_of_a_running_pod_creates_new_groups(space: LiveScenario) -> None:
    """A template that was copied from a pod contains labels that only controllers may set (ADR 29)."""
    (pod,) = (await space.bring_up(lws("origin", replicas=1, size=1))).of("origin").values()
    template = pod_template() | {"metadata": {"labels": meta.labels(pod), "annotations": meta.annotations(pod)}}
    state = await space.bring_up(lws(replicas=3, size=2, template={"workerTemplate": template}))

    pods = state.of("web")
    places = {(meta.labels(one)[labels.GROUP_INDEX], meta.labels(one)[labels.WORKER_INDEX]) for one in pods.values()}
    assert places == {(str(group), str(rank)) for group in range(3) for rank in range(2)}
    assert len({meta.labels(one)[labels.GROUP_KEY] for one in pods.values()}) == 3


async def test_deleted_shared_service_is_recreated(space: LiveScenario) -> None:
    """A deleted shared Service is recreated (R-SVC-5)."""
    before = await space.bring_up(lws())
    await space.delete("web", SERVICES)

    def is_another(state: State) -> None:
        assert meta.uid(state.services["web"]) != meta.uid(before.services["web"])

    await space.until(is_another)


async def test_equal_templates_have_equal_revision_keys(space: LiveScenario) -> None:
    """The golden vector is unchanged after the API server stores the object (R-REV-9)."""
    ports = [{"containerPort": 8080}]
    image = "docker.io/nginxinc/nginx-unprivileged:1.27"
    worker = {"spec": {"containers": [{"name": "worker", "image": image, "ports": ports}]}}
    leader = {"spec": {"containers": [{"name": "leader", "image": image}]}}
    template = {"workerTemplate": worker, "leaderTemplate": leader}
    await space.create(lws(replicas=0, size=2, template=template))

    def has_key(state: State) -> None:
        assert {revision_of(one) for one in revisions_of(state, "web")} == {"7bdcf6cbd6"}
        assert revision_of(state.statefulsets["web"]) == "7bdcf6cbd6"

    await space.until(has_key)


async def test_group_of_one_has_no_worker_statefulset(space: LiveScenario) -> None:
    """A group with one pod does not have a worker StatefulSet (R-WSTS-8, R-STAT-6)."""
    state = await space.bring_up(lws(replicas=3, size=1))
    assert state.statefulsets.keys() == {"web"}
    assert dict(environment(state.pods["web-2"]))["LWS_GROUP_SIZE"] == "1"


async def test_zero_groups_are_available_immediately(space: LiveScenario) -> None:
    """A LeaderWorkerSet with zero groups is available immediately (R-STAT-16, R-API-10)."""
    state = await space.bring_up(lws(replicas=0))
    assert "readyReplicas" not in meta.status(state.leaderworkersets["web"])


async def test_workers_wait_for_a_ready_leader(space: LiveScenario) -> None:
    """With the `LeaderReady` startup policy, each group waits for its own leader (R-WSTS-1 (h))."""
    await space.create(lws(replicas=2, size=2, gated=True, startupPolicy="LeaderReady"))

    def leaders_run(state: State) -> None:
        assert_created(state, "web-0", "web-1")
        assert {meta.status(pod).get("phase") for pod in state.pods.values()} == {"Running"}
        assert meta.status(state.leaderworkersets["web"])["replicas"] == 2

    state = await space.until(leaders_run)
    assert state.statefulsets.keys() == {"web"}
    await space.release("web-1")
    state = await space.until(lambda state: assert_created(state, "web-0", "web-1", "web-1-1"))
    assert state.statefulsets.keys() == {"web", "web-1"}
    await space.release("web-0")
    await space.until(lambda state: assert_created(state, "web-0", "web-0-1", "web-1", "web-1-1"))
    await space.release("web-0-1", "web-1-1")
    await space.settled()


async def test_workers_wait_for_a_leader_with_a_slow_image(space: LiveScenario) -> None:
    """Workers are created only after their leader is ready, even if its image is pulled slowly (R-WSTS-1 (h))."""
    template = {"leaderTemplate": slow_template(2)}
    await space.bring_up(lws(replicas=2, size=2, template=template, startupPolicy="LeaderReady"))
    for leader, worker in (("web-0", "web-0-1"), ("web-1", "web-1-1")):
        seen = [change.new for change in space.changes if change.new is not None]
        ready = next(at for at, pod in enumerate(seen) if meta.name(pod) == leader and is_ready(pod))
        assert ready < next(at for at, pod in enumerate(seen) if meta.name(pod) == worker), "\n".join(space.story())
        assert seconds_until_ready(seen[ready]) >= 1


def seconds_until_ready(pod: JSONObject) -> float:
    """Return the whole seconds from the creation of a pod to its readiness."""
    ready = next(one["lastTransitionTime"] for one in meta.status(pod)["conditions"] if one["type"] == "Ready")
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return (datetime.fromisoformat(ready) - created).total_seconds()


async def test_workers_start_with_their_leader_by_default(space: LiveScenario) -> None:
    """With `LeaderCreated`, the set is progressing until all pods are ready (R-WSTS-1, R-STAT-8)."""
    await space.create(lws(replicas=1, size=3, gated=True))
    state = await space.until(lambda state: assert_progressing(state, "web-0", "web-0-1", "web-0-2"))
    assert not any(is_ready(pod) for pod in state.pods.values())
    await space.release("web-0", "web-0-1", "web-0-2")
    await space.settled()


async def test_defaults_are_filled_in(space: LiveScenario) -> None:
    """The CRD sets defaults (R-DEF-1 to R-DEF-5, R-API-2)."""
    minimal = lws(replicas=1)
    del minimal["spec"]["replicas"], minimal["spec"]["leaderWorkerTemplate"]["size"]
    spec = (await space.create(minimal))["spec"]
    assert (spec["replicas"], spec["startupPolicy"], spec["leaderWorkerTemplate"]["size"]) == (1, "LeaderCreated", 1)
    assert spec["leaderWorkerTemplate"]["restartPolicy"] == "RecreateGroupOnPodRestart"
    rolling = {"partition": 0, "maxUnavailable": 1, "maxSurge": 0}
    assert spec["rolloutStrategy"] == {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    assert spec["networkConfig"] == {"subdomainPolicy": "Shared"}
    await space.settled()


def environment(pod: JSONObject) -> list[tuple[str, str]]:
    """Return the environment variables of the first container."""
    return [(variable["name"], variable["value"]) for variable in pod["spec"]["containers"][0]["env"]]


def assert_created(state: State, *names: str) -> None:
    """Check that exactly these pods exist."""
    assert state.pods.keys() == set(names)


def assert_progressing(state: State, *names: str) -> None:
    """Check that exactly these pods run, and that the status reports the progress."""
    assert_created(state, *names)
    found = {one["type"]: one["status"] for one in meta.status(state.leaderworkersets["web"])["conditions"]}
    assert found == {"Progressing": "True", "Degraded": "False"}
    assert {meta.status(pod).get("phase") for pod in state.pods.values()} == {"Running"}
