"""Tests that the embedded kubelet and a real kubelet report the same statuses for the same pods."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.node import images
from tests.node.kubeletscenarios import LIVES, Life, differences, facts, ready
from tests.node.machine import ends_with_parent
from tests.node.objects import PREFIX
from tests.node.place import LWS, Place

from kuberuntime.objects.meta import JSONObject

NAME = "kubelets"
SECONDS = 400.0
"""The maximum duration of the observation. Intervals between later restarts last minutes."""


class Kubectl:
    """Runs kubectl on one of the clusters."""

    def __init__(self, words: list[str], environment: dict[str, str], place: Place) -> None:
        self.words = words
        self.environment = environment
        self.place = place

    def run(self, *words: str, text: str | None = None) -> str:
        """Run kubectl until it exits. Return its output."""
        done = self.ended(*words, text=text)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def ended(self, *words: str, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run kubectl until it exits, with any exit code."""
        return subprocess.run(
            [*self.words, *words], env=self.environment, input=text, capture_output=True, text=True, check=False
        )

    def play(self) -> dict[str, dict[str, Any]]:
        """Run all pods until they reach their final state. Return the facts about each pod."""
        pods = [pod_of(name, life) for name, life in LIVES.items()]
        self.run(
            "apply",
            "--validate=false",
            "--filename=-",
            text=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}),
        )
        seen: dict[str, tuple[JSONObject, dict[str, str]]] = {}
        try:
            self.place.until(lambda: self.look(seen) == set(LIVES), "all pods as they should be looked at", SECONDS)
        except AssertionError as error:
            error.add_note(f"not so: {sorted(set(LIVES) - set(seen))}")
            raise
        events = json.loads(self.run("get", "events", "--output=json"))["items"]
        return {
            name: facts(pod, [event for event in events if event["involvedObject"]["name"] == name], printed)
            for name, (pod, printed) in seen.items()
        }

    def look(self, seen: dict[str, tuple[JSONObject, dict[str, str]]]) -> set[str]:
        """Store pods that have newly reached a stable state, with their logs. Return the names of all stored pods.

        A log is read now: the next run of a container, seconds later, begins with an empty one.
        """
        for pod in json.loads(self.run("get", "pods", "--output=json"))["items"]:
            name = pod["metadata"]["name"]
            if (
                name not in seen
                and self.is_resized(name, pod)
                and self.was_deleted(name, pod)
                and LIVES[name].settled(pod)
            ):
                seen[name] = pod, self.logs(pod)
        return set(seen)

    def was_deleted(self, name: str, pod: JSONObject) -> bool:
        """Return whether the pod was deleted if its scenario requires it. Delete the pod after it is ready."""
        grace = LIVES[name].deleted
        if grace is None or "deletionTimestamp" in pod["metadata"]:
            return True
        if ready(pod):
            self.run("delete", "pod", name, f"--grace-period={grace}", "--wait=false")
        return False

    def release(self) -> None:
        """Remove the finalizer from pods so that the cluster removes the pods."""
        for name in (name for name, life in LIVES.items() if life.deleted is not None):
            self.ended("patch", "pod", name, "--type=merge", '--patch={"metadata":{"finalizers":null}}')

    def is_resized(self, name: str, pod: JSONObject) -> bool:
        """Return whether the pod spec contains the final resources.

        Resize it after it is ready with its first resources.
        """
        resources = LIVES[name].resized
        if resources is None or pod["spec"]["containers"][0]["resources"] == resources:
            return True
        if ready(pod):
            patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
            self.run("patch", "pod", name, "--subresource=resize", f"--patch={json.dumps(patch)}")
        return False

    def logs(self, pod: JSONObject) -> dict[str, str]:
        """Return the output of `kubectl logs` for a pod and for its previous run, or the error message."""
        name = pod["metadata"]["name"]
        if not LIVES[name].has_logs:
            return {}
        words: dict[str, tuple[str, ...]] = {"log": ()}
        if pod["status"]["phase"] in {"Succeeded", "Failed"}:
            words["log of the run before"] = ("--previous",)
        ended = {kind: self.ended("logs", name, *given) for kind, given in words.items()}
        return {kind: done.stdout + done.stderr for kind, done in ended.items()}


def pod_of(name: str, life: Life) -> JSONObject:
    """Return the pod of a scenario."""
    metadata = {"name": name, "finalizers": [] if life.deleted is None else [f"{PREFIX}/kept"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": life.spec}


@pytest.fixture
def embedded(place: Place, tmp_path: Path) -> Iterator[Kubectl]:
    """Run a cluster on this machine. Its containers have the same files as on the real nodes."""
    root = tmp_path / "busybox"
    images.unpack_busybox(root)
    environment = os.environ | {"LWS_STATE_HOME": str(tmp_path / "lws"), "HOME": str(tmp_path)}
    process = subprocess.Popen(
        [*LWS, "up", NAME, "--image", f"localhost/busybox={root}"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=ends_with_parent(signal.SIGTERM),  # noqa: PLW1509 - one call, no locks
    )
    try:
        assert process.stdout is not None
        assert any(line.startswith("export KUBECONFIG=") for line in process.stdout)
        kubeconfig = tmp_path / "lws" / NAME / "kubeconfig"
        yield Kubectl(["kubectl", f"--kubeconfig={kubeconfig}"], place.cluster.environment, place)
    finally:
        process.terminate()
        process.communicate()
        shutil.rmtree(root)


def test_both_kubelets_produce_the_same_status(place: Place, embedded: Kubectl) -> None:
    words = [*place.cluster.inside, "kubectl", "--namespace", place.name]
    real = Kubectl(words, place.cluster.environment, place)
    try:
        with ThreadPoolExecutor() as pool:
            ours = pool.submit(embedded.play)
            theirs = real.play()
    finally:
        real.release()
    found = {name: differences(theirs[name], ours.result()[name]) for name in LIVES}
    unknown = {name: found[name] for name, life in LIVES.items() if set(found[name]) != set(life.known)}
    lines = [f"{name}: {fact}: {values}" for name, facts in unknown.items() for fact, values in facts.items()]
    assert not unknown, "real, embedded:\n" + "\n".join(lines)
