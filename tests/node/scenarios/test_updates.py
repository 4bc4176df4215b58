"""Tests updates that preserve pods: images, CPU and memory in place, and restarts of all containers."""

from tests.node.images import BUSYBOX, OTHER_BUSYBOX
from tests.node.objects import IMAGE, WAIT, changed, container, leaderworkerset, pod
from tests.node.place import Place, restarts

NOTED = f"echo start >> /kept/starts; {WAIT}"
KEPT = {"kept": "/kept"}
MEMORY = "spec.leaderWorkerTemplate.workerTemplate.spec.containers.0.resources"
GROWN = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "400m", "memory": "96Mi"}}
LIMIT = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max"


def in_place(name: str) -> dict[str, object]:
    """Return two groups of two pods that are updated in place. A file counts the container starts."""
    template = pod(container(NOTED, mounts=KEPT), volumes=[{"name": "kept", "emptyDir": {}}])
    return leaderworkerset(name, template, replicas=2, annotations={"in-place": "IfPossible"})


def identities(place: Place, name: str) -> dict[str, tuple[str, str, str]]:
    """Return the UID, address and node of each pod."""
    return {
        one["metadata"]["name"]: (one["metadata"]["uid"], one["status"]["podIP"], one["spec"]["nodeName"])
        for one in place.pods(name)
    }


def test_image_is_updated_in_place(place: Place) -> None:
    obj = in_place("kept")
    place.ready(obj, 4)
    before = identities(place, "kept")
    place.ready(changed(obj, IMAGE, OTHER_BUSYBOX), 4)
    assert identities(place, "kept") == before
    assert place.exec("kept-1-1", "cat", "/etc/second", "/kept/starts") == "second\nstart\nstart\n"


def test_cpu_and_memory_are_updated_in_place(place: Place) -> None:
    obj = in_place("grown")
    place.ready(obj, 4)
    before = identities(place, "grown")
    place.ready(changed(obj, MEMORY, GROWN), 4)
    assert identities(place, "grown") == before
    assert [restarts(one) for one in place.pods("grown")] == [0] * 4
    assert place.exec("grown-0-1", "sh", "-c", LIMIT) == f"{96 << 20}\n"


def test_image_that_cannot_be_pulled_is_reverted(place: Place) -> None:
    obj = in_place("back")
    place.ready(obj, 4)
    before = identities(place, "back")
    place.apply(changed(obj, IMAGE, "localhost/absent:1"))
    place.until(lambda: waiting_for_image(place, "back") == 2, "a group whose image cannot be pulled")
    place.ready(obj, 4)
    assert identities(place, "back") == before


def test_pods_stay_when_their_node_lacks_an_amount(place: Place) -> None:
    template = pod(container(NOTED, mounts=KEPT), volumes=[{"name": "kept", "emptyDir": {}}])
    obj = leaderworkerset("huge", template, annotations={"in-place": "Only"})
    place.ready(obj, 2)
    before = identities(place, "huge")
    huge = {"requests": {"cpu": "900", "memory": "16Mi"}, "limits": {"cpu": "900", "memory": "96Mi"}}
    place.apply(changed(obj, MEMORY, huge))
    place.until(lambda: "LWS-E097" in place.ended("explain", "huge").stdout, "the cause of an update that waits")
    place.ready(changed(obj, MEMORY, GROWN), 2)
    assert identities(place, "huge") == before


def waiting_for_image(place: Place, name: str) -> int:
    """Return the number of containers in a LeaderWorkerSet that wait for a missing image."""
    states = [one["status"]["containerStatuses"][0]["state"] for one in place.pods(name)]
    return sum(state.get("waiting", {}).get("reason") in {"ErrImagePull", "ImagePullBackOff"} for state in states)


def test_all_containers_restart_in_their_pod(place: Place) -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}
    script = 'trap "exit 88" TERM; sleep 100000 & wait $!'
    main = container(script, restartPolicy="Never", restartPolicyRules=[rule])
    template = pod(main, {**container(WAIT), "name": "side"})
    place.ready(leaderworkerset("whole", template, annotations={"in-place-restarts": "120s"}), 2)
    before = identities(place, "whole")
    place.terminate("whole-0-1")
    place.until(lambda: place.events("RestartedInPlace"), "the event of the restart")
    place.await_ready("whole", 1, 2)
    assert identities(place, "whole") == before
    counts = {one["name"]: one["restartCount"] for one in place.pods("whole")[1]["status"]["containerStatuses"]}
    assert counts == {"main": 1, "side": 1}


def test_rollout_is_undone(place: Place) -> None:
    obj = leaderworkerset("undone", pod(), replicas=2)
    place.ready(obj, 4)
    place.ready(changed(obj, IMAGE, OTHER_BUSYBOX), 4)
    place.lws("rollout", "undo", "undone")
    place.await_ready("undone", 2, 4)
    assert {one["spec"]["containers"][0]["image"] for one in place.pods("undone")} == {BUSYBOX}
