"""Tests the creation, failure and recreation of groups with real containers."""

from tests.node.images import OTHER_BUSYBOX
from tests.node.objects import IMAGE, TALK, WAIT, changed, container, leaderworkerset, pod
from tests.node.place import Place, restarts

SERVE = f'mkdir -p /tmp/www; echo "served by $HOSTNAME" > /tmp/www/index.html; httpd -p 8080 -h /tmp/www; {WAIT}'
FETCH = f"until wget -q -O - http://$LWS_LEADER_ADDRESS:8080/ > /tmp/page; do sleep 1; done; cat /tmp/page; touch /tmp/ok; {WAIT}"
SERVES = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
FETCHED = {"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 1}


def test_workers_reach_their_leader_by_name(place: Place) -> None:
    worker, leader = pod(container(FETCH, readinessProbe=FETCHED)), pod(container(SERVE, readinessProbe=SERVES))
    place.ready(leaderworkerset("sample", worker, replicas=3, size=3, leaderTemplate=leader), 9)
    for group in range(3):
        for rank in (1, 2):
            assert place.kubectl("logs", f"sample-{group}-{rank}").endswith(f"served by sample-{group}\n")


def test_each_group_has_its_own_service_when_unique(place: Place) -> None:
    worker, leader = pod(container(FETCH, readinessProbe=FETCHED)), pod(container(SERVE, readinessProbe=SERVES))
    obj = leaderworkerset("own", worker, replicas=2, leaderTemplate=leader)
    obj["spec"]["networkConfig"] = {"subdomainPolicy": "UniquePerReplica"}
    place.ready(obj, 4)
    services = {one["metadata"]["name"] for one in place.items("Service")}
    assert services == {"own-0", "own-1"}
    assert place.kubectl("logs", "own-1-1").endswith("served by own-1\n")


def test_workers_wait_for_their_leader_by_policy(place: Place) -> None:
    gate = f"until [ -e /tmp/open ]; do sleep 0.2; done; {SERVE}"
    leader = pod(container(gate, readinessProbe=SERVES))
    obj = leaderworkerset("late", pod(), leaderTemplate=leader)
    obj["spec"]["startupPolicy"] = "LeaderReady"
    place.apply(obj)
    place.until(lambda: any(one["status"]["phase"] == "Running" for one in place.pods("late")), "the leader runs")
    assert [one["metadata"]["name"] for one in place.pods("late")] == ["late-0"]
    place.exec("late-0", "touch", "/tmp/open")
    place.await_ready("late", 1, 2)


def test_killed_process_recreates_its_group(place: Place) -> None:
    before = uids_when_ready(place)
    place.terminate("failing-0-1")
    after = uids_after(place, before)
    assert after["failing-0"] != before["failing-0"]
    assert {name: uid for name, uid in after.items() if name.startswith("failing-1")} == {
        name: uid for name, uid in before.items() if name.startswith("failing-1")
    }
    assert any(
        "failing-0-1" in text for text in place.events("RecreateGroupOnPodRestart") + place.events("RecreateGroup")
    )


def test_deleted_worker_recreates_its_group(place: Place) -> None:
    before = uids_when_ready(place)
    place.kubectl("delete", "pod", "failing-1-1", "--wait=false")
    after = uids_after(place, before)
    assert after["failing-1"] != before["failing-1"]
    assert after["failing-0"] == before["failing-0"]


def test_deleted_leader_recreates_its_group(place: Place) -> None:
    before = uids_when_ready(place)
    place.kubectl("delete", "pod", "failing-1", "--wait=false")
    after = uids_after(place, before)
    assert after["failing-1-1"] != before["failing-1-1"]
    assert after["failing-0-1"] == before["failing-0-1"]


def test_container_restarts_alone_without_a_policy(place: Place) -> None:
    obj = leaderworkerset("alone", pod(), restartPolicy="None")
    place.ready(obj, 2)
    before = place.uids("alone")
    place.terminate("alone-0-1")
    place.until(lambda: [restarts(one) for one in place.pods("alone")] == [0, 1], "a restart of rank 1 alone")
    place.await_ready("alone", 1, 2)
    assert place.uids("alone") == before


def test_a_group_with_a_random_key_is_replaced_by_another(place: Place) -> None:
    obj = leaderworkerset("keyed", pod(), replicas=2)
    obj["spec"]["groupIdentity"] = "Hash"
    place.ready(obj, 4)
    before = place.uids("keyed")
    workers = sorted(name for name in before if name.endswith("-1"))
    place.terminate(workers[0])
    place.until(lambda: workers[0] not in place.uids("keyed"), "the end of the failed group")
    place.await_ready("keyed", 2, 4)
    kept = set(before.values()) & set(place.uids("keyed").values())
    assert len(kept) == 2
    assert before[workers[1]] in kept


def test_scaling_adds_and_removes_the_highest_groups(place: Place) -> None:
    place.ready(leaderworkerset("scaled", pod(), replicas=1), 2)
    first = place.uids("scaled")
    place.kubectl("scale", "lws/scaled", "--replicas=3")
    place.await_ready("scaled", 3, 6)
    place.lws("scale", "scaled", "--replicas", "1")
    place.await_ready("scaled", 1, 2)
    assert place.uids("scaled") == first


def test_rollout_respects_max_unavailable(place: Place) -> None:
    obj = rolled(place, {"maxUnavailable": 1, "maxSurge": 0})
    least, most = watch_rollout(place, obj)
    assert least >= 2
    assert most <= 3


def test_rollout_respects_max_surge(place: Place) -> None:
    obj = rolled(place, {"maxUnavailable": 0, "maxSurge": 1})
    least, most = watch_rollout(place, obj)
    assert least >= 3
    assert most <= 4


def rolled(place: Place, budget: dict[str, int]) -> dict[str, object]:
    """Create three groups with a rollout budget. Return the groups with their next image."""
    obj = leaderworkerset("rolled", pod(), replicas=3)
    obj["spec"]["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": budget}
    place.ready(obj, 6)
    return changed(obj, IMAGE, OTHER_BUSYBOX)


def watch_rollout(place: Place, obj: dict[str, object]) -> tuple[int, int]:
    """Apply a new revision, and wait until the rollout completes.

    Return the minimum of ready groups and the maximum of leaders.
    """
    seen: list[tuple[int, int]] = []

    def complete() -> bool:
        found = place.pods("rolled")
        groups: dict[str, list[bool]] = {}
        for one in found:
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in one["status"].get("conditions", []))
            groups.setdefault(one["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"], []).append(ready)
        seen.append((sum(states == [True, True] for states in groups.values()), len(groups)))
        images = {one["spec"]["containers"][0]["image"] for one in found}
        return images == {OTHER_BUSYBOX} and place.is_settled("rolled", 3) and len(found) == 6

    place.apply(obj)
    place.until(complete, "the end of the rollout")
    return min(ready for ready, _ in seen), max(groups for _, groups in seen)


def uids_when_ready(place: Place) -> dict[str, str]:
    """Start two groups of two pods. Return the UIDs of the pods."""
    place.ready(leaderworkerset("failing", pod(container(TALK)), replicas=2), 4)
    return place.uids("failing")


def uids_after(place: Place, before: dict[str, str]) -> dict[str, str]:
    """Wait until some pods were replaced and all pods are ready. Return the pod UIDs."""
    place.until(lambda: set(place.uids("failing").values()) - set(before.values()), "another pod")
    place.await_ready("failing", 2, 4)
    return place.uids("failing")
