"""Runs a scenario in a namespace of the cluster, with a user's commands."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from typing import Final, TypeVar, cast

from tests.controlplane.process import StartError
from tests.node.api import PATHS, Api, Refused
from tests.node.cluster import NodeCluster
from tests.node.objects import PREFIX

from kuberuntime.objects.meta import JSONObject

SECONDS: Final = 180.0
"""The time without changes to workloads and pods after which a scenario stops waiting on a busy machine."""

LONGEST: Final = 5 * SECONDS
"""The maximum wait duration, because a crash loop changes pods forever."""

LWS: Final = [sys.executable, "-m", "lwsctl.cli"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace in which a scenario runs.

    `told` contains its recorded states, and `order` the pods that were created and deleted since the last state.

    `told` contains its recorded states, and `order` the pods that were created and deleted since the last state.
    """

    cluster: NodeCluster
    name: str

    @property
    def api(self) -> Api:
        """Return the API server."""
        return self.cluster.api

    def kubectl(self, *words: str, text: str | None = None) -> str:
        """Run kubectl in the namespace. Return its output."""
        return self.cluster.kubectl("--namespace", self.name, *words, text=text)

    def lws(self, command: str, *words: str, code: int = 0, text: str | None = None) -> str:
        """Run `lws` in the namespace. Fail unless the exit code is `code`. Return the output of both streams."""
        done = self.ended(command, *words, text=text)
        assert done.returncode == code, (
            f"lws {command} {words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
        return done.stdout + done.stderr

    def ended(self, command: str, *words: str, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run `lws` in the namespace until it exits, with any exit code."""
        return subprocess.run(
            [*self.cluster.inside, *LWS, "--namespace", self.name, command, *words],
            env=self.cluster.environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @contextmanager
    def running(self, words: Sequence[str]) -> "Iterator[subprocess.Popen[str]]":
        """Run a command in the background. It is stopped when the context exits or after a timeout."""
        process = subprocess.Popen(
            [*self.cluster.inside, *words],
            env=self.cluster.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        overdue = Timer(SECONDS, process.terminate)
        overdue.start()
        try:
            yield process
        finally:
            overdue.cancel()
            process.terminate()
            process.communicate(timeout=SECONDS)

    def apply(self, *objects: JSONObject) -> None:
        """Apply objects."""
        self.kubectl("apply", "--filename=-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def items(self, kind: str, selector: str = "") -> list[JSONObject]:
        """Return the objects of a kind, sorted by name."""
        path = f"{PATHS[kind].format(self.name)}?labelSelector={selector}"
        found = cast("list[JSONObject]", self.api.read(path)["items"])
        return sorted(found, key=lambda one: str(one["metadata"]["name"]))

    def get(self, kind: str, name: str) -> JSONObject | None:
        """Return an object, or None if it does not exist."""
        try:
            return self.api.read(f"{PATHS[kind].format(self.name)}/{name}")
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def pods(self, name: str) -> list[JSONObject]:
        """Return the pods of a LeaderWorkerSet."""
        return self.items("Pod", f"{PREFIX}/name={name}")

    def uids(self, name: str) -> dict[str, str]:
        """Return the UIDs of the LeaderWorkerSet pods that are not being deleted."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods(name) if not is_ending(pod)}

    def until(self, wanted: Callable[[], T], what: str, seconds: float = SECONDS) -> T:
        """Poll until a condition is true, while workloads or pods in the namespace change. Return its value."""
        began, state = time.monotonic(), self.state()
        deadline = began + seconds
        while not (found := wanted()):
            if time.monotonic() > deadline:
                previous, state = state, self.state()
                if state == previous or deadline > began + LONGEST:
                    raise AssertionError(f"not within {time.monotonic() - began:.0f} s: {what}\n{self.report()}")
                deadline = time.monotonic() + seconds
            time.sleep(0.25)
        return found

    def state(self) -> list[str]:
        """Return the resource versions of all workloads and pods in the namespace."""
        return [one["metadata"]["resourceVersion"] for kind in ("LeaderWorkerSet", "Pod") for one in self.items(kind)]

    def ready(self, obj: JSONObject, pods: int) -> list[JSONObject]:
        """Apply a LeaderWorkerSet, wait until its status reports `count` ready pods, and return its pods."""
        self.apply(obj)
        return self.await_ready(obj["metadata"]["name"], obj["spec"]["replicas"], pods)

    def await_ready(self, name: str, groups: int, pods: int) -> list[JSONObject]:
        """Wait until a LeaderWorkerSet has this number of pods, and of ready groups with its newest revision."""

        def settled() -> list[JSONObject]:
            found = self.pods(name)
            return found if len(found) == pods and all(map(is_ready, found)) and self.is_settled(name, groups) else []

        return self.until(settled, f"{groups} ready groups and {pods} pods of {name}")

    def is_settled(self, name: str, groups: int) -> bool:
        """Return whether the status reports this number of ready, updated groups for the current spec."""
        obj = self.get("LeaderWorkerSet", name) or {}
        status = obj.get("status", {})
        counts = [status.get(field, 0) for field in ("replicas", "readyReplicas", "updatedReplicas")]
        observed = {one.get("observedGeneration") for one in status.get("conditions", [])}
        return counts == [groups] * 3 and (not any(observed) or obj["metadata"]["generation"] in observed)

    def events(self, reason: str) -> list[str]:
        """Return the messages of events with this reason."""
        return [event["message"] for event in self.items("Event") if event["reason"] == reason]

    def exec(self, pod: str, *words: str) -> str:
        """Run a command in the first container of a pod with kubectl."""
        return self.kubectl("exec", pod, "--", *words)

    def terminate(self, pod: str) -> None:
        """Stop the first process of the container `main`. The command may be killed with the container."""
        try:
            self.kubectl("exec", pod, "--container=main", "--", "kill", "-TERM", "1")
        except StartError as error:
            if "exit code 137" not in str(error):
                raise

    def report(self) -> str:
        """Return the output that a user would read first."""
        return self.kubectl("get", "lws,pods,events", "--output=wide") + self.ended("explain").stdout


def is_ready(pod: JSONObject) -> bool:
    """Return whether a pod is ready and is not being deleted."""
    conditions = pod.get("status", {}).get("conditions", [])
    return not is_ending(pod) and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_ending(pod: JSONObject) -> bool:
    """Return whether a pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def restarts(pod: JSONObject) -> int:
    """Return the restart count of the first container in a pod."""
    return int(pod["status"]["containerStatuses"][0]["restartCount"])
