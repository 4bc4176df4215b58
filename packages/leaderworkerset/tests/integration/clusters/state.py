"""Reads the objects in a namespace, and defines the state of a LeaderWorkerSet after reconciliation.

Expectations are plain assertions, so that a test can wait for the same function, and the function reports what is
missing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels

Objects = Mapping[str, JSONObject]


@dataclass(frozen=True)
class State:
    """The objects in a namespace by name. `revisions` contains the revisions of LeaderWorkerSets."""

    leaderworkersets: Objects
    statefulsets: Objects
    pods: Objects
    services: Objects
    revisions: Objects
    claims: Objects
    events: Objects

    def group(self, name: str, index: int) -> dict[str, JSONObject]:
        """Return the pods of one group by name."""
        wanted = {labels.NAME: name, labels.GROUP_INDEX: str(index)}
        return {pod: obj for pod, obj in self.pods.items() if wanted.items() <= meta.labels(obj).items()}

    def of(self, name: str) -> dict[str, JSONObject]:
        """Return all pods of one LeaderWorkerSet by name."""
        return {pod: obj for pod, obj in self.pods.items() if meta.labels(obj).get(labels.NAME) == name}

    def uids(self, name: str) -> dict[str, str]:
        """Return the UIDs of the pods of one LeaderWorkerSet by pod name."""
        return {pod: meta.uid(obj) for pod, obj in self.of(name).items()}

    def notes(self, reason: str, name: str = "web") -> list[str]:
        """Return the messages of a LeaderWorkerSet's events with this reason, one line for each occurrence."""
        found = [
            event
            for event in self.events.values()
            if event["reason"] == reason
            and (event["regarding"]["kind"], event["regarding"]["name"]) == ("LeaderWorkerSet", name)
        ]
        return [event["note"] for event in found for _ in range((event.get("series") or {}).get("count", 1))]


def shows(read: Callable[[State], object], expected: object) -> Callable[[State], None]:
    """Return an assertion that `read` returns the expected value."""

    def expectation(state: State) -> None:
        found = read(state)
        assert found == expected, f"{found} instead of {expected}"

    return expectation


def pod_names(name: str, replicas: int, size: int) -> set[str]:
    """Return the pod names of this number of groups.

    >>> sorted(pod_names("web", 1, 2))
    ['web-0', 'web-0-1']
    """
    leaders = {f"{name}-{index}" for index in range(replicas)}
    return leaders | {f"{leader}-{worker}" for leader in leaders for worker in range(1, size)}


def is_ready(pod: JSONObject) -> bool:
    """Return whether the pod is ready and not being deleted."""
    return meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod)


def revision_of(obj: JSONObject) -> str:
    """Return the revision key of an object."""
    return meta.labels(obj).get(labels.TEMPLATE_REVISION_HASH, "")


def conditions(obj: JSONObject) -> dict[str, str]:
    """Return the status of each condition of the current generation by type."""
    found = meta.status(obj).get("conditions") or []
    return {one["type"]: one["status"] for one in found if one["observedGeneration"] == meta.generation(obj)}


def assert_pods(state: State, name: str, *, replicas: int, size: int) -> None:
    """Check that all pods of these groups are ready, and that there are no other pods."""
    assert state.of(name).keys() == pod_names(name, replicas, size)
    assert {pod for pod, obj in state.of(name).items() if not is_ready(obj)} == set()


def assert_settled(state: State, name: str) -> None:
    """Check that the LeaderWorkerSet is fully reconciled, with exactly the objects that its spec requires.

    R-ARC-2, R-ROLL-11, R-REV-14, R-SVC-1, R-SVC-2, R-STAT-1, R-STAT-6 to R-STAT-9, R-STAT-15.
    """
    obj = state.leaderworkersets[name]
    spec = meta.spec(obj)
    replicas, size = spec["replicas"], spec["leaderWorkerTemplate"]["size"]
    assert_pods(state, name, replicas=replicas, size=size)
    assert_statefulsets(state, name, replicas=replicas, size=size)
    key = revision_of(state.statefulsets[name])
    assert {pod for pod, found in state.of(name).items() if revision_of(found) != key} == set()
    assert {revision_of(revision) for revision in revisions_of(state, name)} == {key}
    assert_services(state, name)
    assert_status(obj)


def assert_statefulsets(state: State, name: str, *, replicas: int, size: int) -> None:
    """Check that the reconciled leader StatefulSet exists, and a worker StatefulSet for each leader pod."""
    workers = {f"{name}-{index}" for index in range(replicas)} if size > 1 else set()
    found = {key: one for key, one in state.statefulsets.items() if meta.labels(one).get(labels.NAME) == name}
    assert found.keys() == {name} | workers
    assert found[name]["spec"]["replicas"] == replicas
    assert found[name]["spec"]["updateStrategy"]["rollingUpdate"].get("partition", 0) == 0
    assert {one["spec"]["replicas"] for key, one in found.items() if key in workers} <= {size - 1}


def assert_services(state: State, name: str) -> None:
    """Check that there is one headless Service, or one for each leader pod."""
    policy = state.leaderworkersets[name]["spec"]["networkConfig"]["subdomainPolicy"]
    found = {key: one for key, one in state.services.items() if meta.labels(one).get(labels.NAME) == name}
    if policy == "Shared":
        assert name in found
    else:
        leaders = {pod for pod, obj in state.of(name).items() if meta.labels(obj)[labels.WORKER_INDEX] == "0"}
        assert found.keys() - {name} == leaders


def assert_status(obj: JSONObject) -> None:
    """Assert that all groups are ready and updated in the status, with conditions of this generation."""
    status, replicas = meta.status(obj), meta.spec(obj)["replicas"]
    counted = {field: status.get(field, 0) for field in ("replicas", "readyReplicas", "updatedReplicas")}
    assert counted == dict.fromkeys(counted, replicas)
    assert status["observedGeneration"] == meta.generation(obj)
    selector = f"{labels.NAME}={meta.name(obj)},{labels.WORKER_INDEX}=0"
    assert status["hpaPodSelector"] == selector
    true = {one["type"] for one in status["conditions"] if one["status"] == "True"}
    scheduled = {"WorkloadSchedulingCreated"} if "scheduling" in meta.spec(obj) else set()
    assert true == {"Available"} | scheduled
    assert conditions(obj)["Available"] == "True"


def revisions_of(state: State, name: str) -> list[JSONObject]:
    """Return the revisions of a LeaderWorkerSet, oldest first."""
    found = [one for one in state.revisions.values() if meta.labels(one).get(labels.NAME) == name]
    return sorted(found, key=lambda one: int(one["revision"]))
