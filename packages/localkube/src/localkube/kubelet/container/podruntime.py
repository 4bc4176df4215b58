"""Manages the runtime of one pod, with its latest object, its state and the runs of its containers.

The kubelet stores newer objects in it. The pod's worker and its containers change the rest, on the same event loop.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from kuberuntime.clock import ClockJumps
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from localkube.kubelet.container.containerrun import ContainerRun
from localkube.kubelet.node import podevents
from localkube.kubelet.node.node import NodeContext
from localkube.kubelet.pod import recovery
from localkube.kubelet.pod.recovery import Interruption
from localkube.kubelet.pod.state import ContainerState, PodState
from localkube.kubelet.spec import restarts
from localkube.kubelet.spec.environment import EnvironmentInputs

RETRY: Final = timedelta(seconds=10)
"""The time in seconds until a failed step is retried, unless its dependencies change earlier."""


class PodRuntime:
    """One pod on this node.

    `changed` wakes its worker. `reported` is set when the API has a status from this kubelet.

    `runs` has the current run of each container, until its exit is recorded.
    """

    def __init__(self, pod: JSONObject, state: PodState, node: NodeContext) -> None:
        self.node = node
        self.pod = self._with_annotations(pod)
        self.state = state
        self.runs: dict[str, ContainerRun] = {}
        self.changed = asyncio.Event()
        self.reported = asyncio.Event()
        self.are_sources_stale = False
        self.is_sandbox_lost = False
        self.is_finished = False
        self._jumps = ClockJumps(node.clock)

    @property
    def uid(self) -> UID:
        """Return the UID of the pod, which is also the name of its sandbox."""
        return meta.uid(self.pod)

    @property
    def directory(self) -> Path:
        """Return the directory of the pod."""
        return self.node.settings.pod_directory(self.uid)

    def log_directory(self, container: str) -> Path:
        """Return the log directory of one of its containers."""
        return self.directory / "logs" / container

    def find_run(self, container: str) -> ContainerRun | None:
        """Return the run of a container that currently has a process."""
        run = self.runs.get(container)
        return run if run is not None and run.is_launched and run.exit is None else None

    @property
    def running(self) -> list[ContainerRun]:
        """Return the runs that currently have a process."""
        return [run for run in map(self.find_run, self.runs) if run is not None]

    def now(self) -> datetime:
        """Return the current time."""
        return self.node.clock.now()

    def follow_clock(self) -> None:
        """Shift the deadlines of the pod after the wall clock was set, so that they do not expire early."""
        if jump := self._jumps.measure():
            self.state = self.state.after_jump(jump)

    @property
    def address(self) -> str:
        """Return the address of the pod if it has a sandbox, or an empty string otherwise."""
        return self.state.ip if self.state.has_sandbox else ""

    def update_if_newer(self, pod: JSONObject) -> bool:
        """Store the object of the pod if it is newer. Return whether it was stored."""
        if int(meta.resource_version(pod) or 0) <= int(meta.resource_version(self.pod) or 0):
            return False
        self.pod = self._with_annotations(pod)
        return True

    def _with_annotations(self, pod: JSONObject) -> JSONObject:
        return restarts.hold_completed(pod) if self.node.settings.hold_completed else pod

    def store_and_wake(self, pod: JSONObject) -> None:
        """Store a newer object of the pod, and wake the worker."""
        if self.update_if_newer(pod):
            self.refresh()

    def refresh(self) -> None:
        """Wake the worker to reread objects to which the pod refers, because they might have changed."""
        self.are_sources_stale = True
        self.set_state(self.state.retry_now())

    def mark_deleted(self) -> None:
        """Record that the pod's object was deleted."""
        self.set_state(replace(self.state, is_deleted=True))

    def mark_sandbox_lost(self) -> None:
        """Record that the pod's sandbox is lost, with all processes in it."""
        self.is_sandbox_lost = True
        self.changed.set()

    def recover(self, interruption: Interruption) -> None:
        """Restore the state from the API object, and report the interruption."""
        self.is_sandbox_lost = False
        self._jumps.measure()
        self.state = recovery.recover(self.pod, self.now(), interruption)
        cut_off = recovery.interrupted_containers(self.state, interruption)
        if cut_off:
            self.emit(interruption.reason, f"{interruption.sentence}. Restarting: {', '.join(cut_off)}")

    def set_state(self, state: PodState) -> None:
        """Replace the state, and wake the worker."""
        self.state = state
        self.changed.set()

    def update_container(self, name: str, change: Callable[[ContainerState], ContainerState]) -> None:
        """Change the state of one container, and wake the worker."""
        self.set_state(self.state.with_container(change(self.state.containers[name])))

    def emit(self, reason: str, note: str, container: str = "") -> None:
        """Record an event about the pod or one of its containers."""
        self.node.events.record(podevents.build(self.pod, reason, note, container))

    async def context(self, *, lenient: bool = False) -> EnvironmentInputs:
        """Return the inputs of variables and files. Raise `SpecError` if a source cannot be read."""
        sources = await self.node.objects.sources(self.pod)
        return EnvironmentInputs(
            pod=self.pod,
            ip=self.state.ip,
            node=self.node.facts(self.pod),
            sources=sources,
            skips_missing_sources=lenient,
            is_dry_run=self.node.settings.stub,
            devices=self.node.devices.visible_devices(self.pod),
        )
