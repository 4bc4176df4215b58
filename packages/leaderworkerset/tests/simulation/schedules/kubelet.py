"""Models the kubelet and the scheduler. Pods are bound, start, become ready, fail, are evicted, and terminate.

It writes to the store as the kubelet writes through the API, in the order in which a kubelet does, but without
containers, volumes and log files: a schedule of some seconds has some hundred of its steps.
Cordons, scheduling gates, readiness gates and PodGroups (`podgroups.py`) are respected.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import msgspec
from tests.scheduled import link_of
from tests.simulation.schedules.podgroups import PodGroups

from kuberuntime.clock import Clock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podstate import ALL_RESTARTED
from kuberuntime.objects.resources import NODES as NODE_KIND
from kuberuntime.objects.resources import PODS
from kuberuntime.objects.timestamps import render
from localkube.apiserver.storage.store import Change, Store, StoreKey
from localkube.apiserver.storage.storeerrors import StaleError

RESOURCE: Final = PODS.group_resource
NODES: Final = ("node-0", "node-1", "node-2")

RUNNING: Final = "ContainersReady"
PENDING: Final = "PodResizePending"
NO_IMAGE: Final = "app:none"
"""An image whose pull fails."""

SYNC: Final = (0.005, 0.1)
"""The minimum and maximum time in seconds until a readiness gate is observed."""

_decoder: Final = msgspec.json.Decoder(JSONObject)


@dataclass(slots=True)
class Pace:
    """The minimum and maximum duration of each pod phase, in seconds."""

    start: tuple[float, float] = (0.05, 0.5)
    end: tuple[float, float] = (0.02, 0.3)


SLOW_PODS: Final = Pace(start=(1.5, 4.0))
"""The pace of slow pods. Their groups become ready in a later second than their creation, as in real clusters."""


class ModelKubelet:
    """Runs the pods in a store.

    `stuck` has the UIDs of pods that never end, `sick` of pods that are never ready, `lost` the names of lost nodes.
    """

    def __init__(self, store: Store, clock: Clock, random: Random) -> None:
        self.pace = Pace()
        self.stuck: set[str] = set()
        self.lost: set[str] = set()
        self.sick: set[str] = set()
        self.failures: list[tuple[str, str]] = []
        """The UIDs of pods that this model caused to fail, with the type of each failure."""
        self._store = store
        self._clock = clock
        self._random = random
        self._groups = PodGroups(store, self._let_go_on)
        store.subscribe(self._committed)

    def restart(self, name: str) -> bool:
        """Make a container of a running pod exit with an error and restart. Return whether the pod was running."""
        pod = self._pod(name)
        if pod is None or meta.is_deleting(pod) or not meta.is_condition_true(pod, RUNNING) or self._is_lost(pod):
            return False
        if _is_redefined(pod):
            self._replace(name, meta.uid(pod))
            return False
        restarts = meta.status(pod)["containerStatuses"][0]["restartCount"] + 1
        self.failures.append((meta.uid(pod), "restart"))
        self._put(pod, self._status(pod, ready=False, restarts=restarts))
        self._later(self.pace.start, self._recover, pod)
        return True

    def restart_all(self, name: str, *, comes_back: bool = True) -> bool:
        """Restart all containers of a running pod in place. Return whether the pod was running."""
        pod = self._pod(name)
        if pod is None or meta.is_deleting(pod) or not meta.is_condition_true(pod, RUNNING) or self._is_lost(pod):
            return False
        if _is_redefined(pod):
            return False
        status = self._status(pod, ready=False, restarts=meta.status(pod)["containerStatuses"][0]["restartCount"] + 1)
        container = status["containerStatuses"][0]
        container["lastState"] = {"terminated": {"exitCode": 137, "reason": ALL_RESTARTED}}
        begun, _, excused = container["containerID"].rpartition("/")
        container["containerID"] = f"{begun}/{int(excused) + 1}"
        self._put(pod, status)
        if comes_back:
            self._later(self.pace.start, self._recover, pod)
        return True

    def evict(self, name: str) -> bool:
        """Fail a pod as a kubelet without free memory does. Return whether the pod existed."""
        pod = self._pod(name)
        if pod is None or meta.is_deleting(pod) or self._is_lost(pod):
            return False
        self.failures.append((meta.uid(pod), "eviction"))
        self._put(pod, {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."})
        return True

    def sicken(self, name: str) -> bool:
        """Make a running pod unready without a restart. Return whether the pod was running."""
        pod = self._pod(name)
        if pod is None or meta.is_deleting(pod) or not meta.is_condition_true(pod, RUNNING) or self._is_lost(pod):
            return False
        self.sick.add(meta.uid(pod))
        self._put(
            pod, self._status(pod, ready=False, restarts=meta.status(pod)["containerStatuses"][0]["restartCount"])
        )
        return True

    def unstick(self, uids: set[str]) -> None:
        """Terminate these stuck pods."""
        self.stuck -= uids
        for pod in map(_decoder.decode, self._store.list(RESOURCE)):
            if meta.uid(pod) in uids and meta.is_deleting(pod):
                self._later(self.pace.end, self._end, pod)

    def release(self) -> None:
        """Terminate stuck pods, make unready pods ready, and restore lost nodes."""
        self.stuck.clear()
        self.sick.clear()
        self.lost.clear()
        for value in list(self._store.list(RESOURCE)):
            pod = _decoder.decode(value)
            if meta.is_deleting(pod):
                self._later(self.pace.end, self._end, pod)
            elif not meta.is_condition_true(pod, RUNNING) and meta.status(pod).get("phase") != "Failed":
                self._later(self.pace.start, self._recover, pod)

    def lose(self, node: str) -> None:
        """Remove a node. Its pods become unready, but do not terminate."""
        self.lost.add(node)
        for value in list(self._store.list(RESOURCE)):
            pod = _decoder.decode(value)
            if meta.spec(pod).get("nodeName") == node and meta.is_condition_true(pod, RUNNING):
                restarts = meta.status(pod)["containerStatuses"][0]["restartCount"]
                self._put(pod, self._status(pod, ready=False, restarts=restarts))

    def _committed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.key.resource != RESOURCE or change.type == "DELETED":
                continue
            if meta.is_deleting(change.object):
                if change.previous is not None and not meta.is_deleting(change.previous):
                    self._later(self.pace.end, self._end, change.object)
            elif change.type == "ADDED" or _is_let_go(change):
                self._later(self.pace.start, self._start, change.object)
            elif _is_redefined(change.object):
                self._later(self.pace.start, self._replace, change.object)
            elif _is_resized(change.object):
                self._later(self.pace.start, self._resize, change.object)
            elif meta.is_condition_true(change.object, "Ready") != _is_ready(change.object):
                self._later(SYNC, self._recount, change.object)

    def _later(self, pace: tuple[float, float], step: Any, pod: JSONObject) -> None:
        asyncio.get_running_loop().call_later(self._random.uniform(*pace), step, meta.name(pod), meta.uid(pod))

    def _start(self, name: str, uid: str) -> None:
        pod = self._pod(name, uid)
        if pod is None or meta.is_deleting(pod) or meta.spec(pod).get("schedulingGates"):
            return
        if meta.status(pod).get("phase") == "Failed":  # evicted before it was started
            return
        free = [node for node in NODES if node not in self.lost and not self._is_cordoned(node)]
        if not free:
            self._later(self.pace.start, self._start, pod)
            return
        if not link_of(pod):
            self._put(self._bind(pod, free), self._status(pod, ready=True, restarts=0))
        elif not meta.spec(pod).get("nodeName"):
            for one in self._groups.together(pod):
                self._put(self._bind(one, free), meta.status(one))
                self._later(self.pace.start, self._recover, one)

    def _bind(self, pod: JSONObject, free: Sequence[str]) -> JSONObject:
        return pod | {"spec": meta.spec(pod) | {"nodeName": self._random.choice(free)}}

    def _let_go_on(self, name: str, uid: str) -> None:
        """Retry to schedule a pod whose PodGroup has changed."""
        asyncio.get_running_loop().call_later(self._random.uniform(*SYNC), self._start, name, uid)

    def _recover(self, name: str, uid: str) -> None:
        pod = self._pod(name, uid)
        if pod is None or meta.is_deleting(pod) or self._is_lost(pod) or _waits_for_image(pod):
            return
        if not meta.spec(pod).get("nodeName"):
            self._start(name, uid)
        elif meta.status(pod).get("phase") != "Failed":
            (container,) = meta.status(pod).get("containerStatuses") or ({"restartCount": 0},)
            self._put(pod, self._status(pod, ready=True, restarts=container["restartCount"]))

    def _replace(self, name: str, uid: str) -> None:
        """Stop a container whose image was changed, and start the new one if its image can be pulled."""
        pod = self._pod(name, uid)
        if pod is None or meta.is_deleting(pod) or self._is_lost(pod) or not _is_redefined(pod):
            return
        if _image(pod) == NO_IMAGE:
            self._await_image(pod)
            return
        restarts = meta.status(pod)["containerStatuses"][0]["restartCount"] + 1
        self._put(pod, self._status(pod, ready=False, restarts=restarts))
        self._later(self.pace.start, self._recover, pod)

    def _await_image(self, pod: JSONObject) -> None:
        """Report a terminated container as waiting, with its previous ID, image and restart count."""
        if not _waits_for_image(pod):
            (ended,) = meta.status(pod)["containerStatuses"]
            status = self._status(pod, ready=False, restarts=ended["restartCount"])
            (container,) = status["containerStatuses"]
            container["state"] = {"waiting": {"reason": "ImagePullBackOff"}}
            self._put(pod, status)

    def _resize(self, name: str, uid: str) -> None:
        """Change the resources of a running container, or report that its node can never provide them."""
        pod = self._pod(name, uid)
        if pod is None or meta.is_deleting(pod) or self._is_lost(pod) or not _is_resized(pod):
            return
        conditions = [one for one in meta.status(pod)["conditions"] if one["type"] != PENDING]
        if _is_too_large(pod):
            told = {"type": PENDING, "status": "True", "reason": "Infeasible", "message": "more than the node has"}
            if not meta.is_condition_true(pod, PENDING):
                self._put(pod, meta.status(pod) | {"conditions": [*conditions, told]})
            return
        running = [one | {"resources": _resources(pod)} for one in meta.status(pod)["containerStatuses"]]
        self._put(pod, meta.status(pod) | {"conditions": conditions, "containerStatuses": running})

    def _recount(self, name: str, uid: str) -> None:
        """Process a changed readiness gate."""
        pod = self._pod(name, uid)
        if pod is not None and not self._is_lost(pod) and meta.is_condition_true(pod, "Ready") != _is_ready(pod):
            conditions = meta.status(pod)["conditions"]
            changed = [one | {"status": _text(_is_ready(pod))} if one["type"] == "Ready" else one for one in conditions]
            self._put(pod, meta.status(pod) | {"conditions": changed})

    def _end(self, name: str, uid: str) -> None:
        """Confirm the deletion of a pod. A pod with finalizers is not removed."""
        pod = self._pod(name, uid)
        if pod is None or uid in self.stuck or self._is_lost(pod):
            return
        if meta.metadata(pod).get("finalizers"):
            metadata = meta.metadata(pod) | {"deletionGracePeriodSeconds": 0}
            if metadata != meta.metadata(pod):
                self._store.update(StoreKey(RESOURCE, meta.namespace(pod), name), pod | {"metadata": metadata}, pod)
            return
        self._store.delete(StoreKey(RESOURCE, meta.namespace(pod), name), pod)

    def _is_cordoned(self, node: str) -> bool:
        known = self._store.get(StoreKey(NODE_KIND.group_resource, "", node))
        return known is not None and bool(meta.spec(known).get("unschedulable"))

    def _is_lost(self, pod: JSONObject) -> bool:
        return meta.spec(pod).get("nodeName") in self.lost

    def _pod(self, name: str, uid: str = "") -> JSONObject | None:
        pod = self._store.get(StoreKey(RESOURCE, "default", name))
        return None if pod is None or (uid and meta.uid(pod) != uid) else pod

    def _put(self, pod: JSONObject, status: JSONObject) -> None:
        key = StoreKey(RESOURCE, meta.namespace(pod), meta.name(pod))
        previous = self._store.get(key)
        if previous is None or meta.uid(previous) != meta.uid(pod):
            raise StaleError(key.name)
        self._store.update(key, pod | {"status": status}, previous)

    def _status(self, pod: JSONObject, *, ready: bool, restarts: int) -> JSONObject:
        now, ready = render(self._clock.now()), ready and meta.uid(pod) not in self.sick
        states = {"PodScheduled": True, "Initialized": True, RUNNING: ready, "Ready": ready and _are_gates_open(pod)}
        conditions = [
            {"type": kind, "status": _text(state), "lastTransitionTime": now} for kind, state in states.items()
        ]
        conditions += [one for one in meta.status(pod).get("conditions") or () if one["type"] not in states]
        last: JSONObject = (meta.status(pod).get("containerStatuses") or [{}])[0]
        excused = int(str(last.get("containerID", "/0")).rpartition("/")[2])
        is_other = bool(last) and (last["image"] != _image(pod) or _waits_for_image(pod))
        excused += is_other and last["restartCount"] != restarts
        image = last["image"] if last.get("restartCount") == restarts else _image(pod)
        container = {
            "name": "main", "image": image, "imageID": "", "ready": ready, "started": ready,
            "restartCount": restarts, "state": {"running": {"startedAt": now}},
            "lastState": last["lastState"] if last.get("restartCount") == restarts else {},
            "containerID": f"model://{restarts}/{excused}",
            "resources": last.get("resources", _resources(pod)) if _is_too_large(pod) else _resources(pod),
        }  # fmt: skip
        return meta.status(pod) | {
            "phase": "Running",
            "conditions": conditions,
            "containerStatuses": [container],
            "startTime": now,
        }


def _is_let_go(change: Change) -> bool:
    """Return whether the last scheduling gate of a pod was removed."""
    before = meta.spec(change.previous).get("schedulingGates") if change.previous else None
    return bool(before) and not meta.spec(change.object).get("schedulingGates")


def _image(pod: JSONObject) -> str:
    return str(meta.spec(pod)["containers"][0]["image"])


def _is_redefined(pod: JSONObject) -> bool:
    """Return whether the spec of a running pod has a different image than its running container."""
    running = meta.status(pod).get("containerStatuses") or ()
    differs = any(one["image"] != _image(pod) for one in running) or _waits_for_image(pod)
    return differs and meta.status(pod).get("phase") == "Running"


def _waits_for_image(pod: JSONObject) -> bool:
    """Return whether a container terminated and the image of its replacement cannot be pulled.

    A pull error that was resolved just now also counts.
    """
    return any("waiting" in one["state"] for one in meta.status(pod).get("containerStatuses") or ())


def _resources(pod: JSONObject) -> JSONObject:
    return meta.spec(pod)["containers"][0].get("resources") or {}


def _is_resized(pod: JSONObject) -> bool:
    """Return whether a running container's resources differ from the pod spec.

    A difference that was resolved without being observed also counts.
    """
    running = meta.status(pod).get("containerStatuses") or ()
    differs, is_pending = (
        any(one.get("resources") != _resources(pod) for one in running),
        meta.is_condition_true(pod, PENDING),
    )
    return not (_is_too_large(pod) and is_pending) if differs else is_pending


def _is_too_large(pod: JSONObject) -> bool:
    """Return whether a pod requests thousands of CPUs."""
    return str((_resources(pod).get("requests") or {}).get("cpu", "")).endswith("k")


def _is_ready(pod: JSONObject) -> bool:
    return meta.is_condition_true(pod, RUNNING) and _are_gates_open(pod)


def _are_gates_open(pod: JSONObject) -> bool:
    gates = meta.spec(pod).get("readinessGates") or ()
    return all(meta.is_condition_true(pod, gate["conditionType"]) for gate in gates)


def _text(state: bool) -> str:
    return "True" if state else "False"
