"""Creates the recorded objects in a cluster, changes them as recorded, and compares the results.

In: a cluster with our manager. Out: the differences per case and phase; none is what a test wants.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypedDict

import jsonpatch
import msgspec
from tests.parity.normal import KINDS, differences, is_recorded, normalize

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.cache.projection import Projection
from kuberuntime.client.client import Client
from kuberuntime.errors import APIError, ConflictError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import EVENTS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

VECTORS: Final = Path(__file__).parents[1] / "vectors" / "live-objects.json"
NAMESPACE: Final = "default"

QUIET: Final = 0.5
"""The time without a change after which equal objects count as the final state, in seconds."""

STEPS: Final = ("Updating replica", "groups ready of total", "deleting surge replica", "to recreate group")
"""Parts of event messages that describe an intermediate state, which varies from run to run.

No pod fails in the recorded histories. If a group was recreated, the Go manager mistook a worker that its own rollout
had removed for a failed one. That is a weakness, not a contract (R-POD-10).
"""

WHOLE: Final = Projection("metadata", "spec", "status", "data", "revision")
"""The fields of all recorded kinds."""

PATIENCE: Final = 20.0
"""The time without a change after which different objects count as the final state, in seconds."""

STALL: Final = 120.0
"""The maximum pause of the Kubernetes garbage collector in seconds, for example to discover new kinds."""


class Case(TypedDict):
    """One recorded LeaderWorkerSet."""

    input: JSONObject
    created: list[JSONObject]
    edit: list[JSONObject]
    edited: list[JSONObject]
    refused: dict[str, list[object]]
    events: list[str]


def load() -> list[Case]:
    """Read the recorded cases."""
    return msgspec.json.decode(VECTORS.read_bytes(), type=list[Case])


def whole(_: JSONObject) -> Projection:
    """Keep an object unchanged, including its `managedFields`."""
    return WHOLE


class Watched:
    """All objects of the recorded kinds in the stores of informers."""

    def __init__(self, client: Client) -> None:
        self.changed = asyncio.Event()
        self.informers = [Informer(client, resource, keep=whole) for resource in KINDS]
        for informer in self.informers:
            informer.subscribe(self._note)

    def on_change(self, call: Callable[[], None]) -> None:
        """Run `call` after each change."""
        for informer in self.informers:
            informer.subscribe(lambda _: call())

    def _note(self, _change: Change) -> None:
        self.changed.set()

    def objects(self) -> list[JSONObject]:
        """Return all objects, including objects that are being deleted."""
        return [obj for informer in self.informers for obj in informer.store.list()]

    async def settle(self, is_done: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Wait until `is_done` holds and no object changes briefly.

        Without changes for `patience` seconds, return in any case.
        """
        silence = 0.0
        while silence < patience:
            self.changed.clear()
            try:
                async with asyncio.timeout(QUIET):
                    await self.changed.wait()
            except TimeoutError:
                silence += QUIET
                if is_done():
                    return
            else:
                silence = 0.0


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Watched]:
    """Watch objects for the duration of the `with` block."""
    watched = Watched(client)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informer.run()) for informer in watched.informers]
        for informer in watched.informers:
            await informer.wait_synced()
        yield watched
        for task in tasks:
            task.cancel()


async def replay(client: Client, cases: Sequence[Case]) -> list[str]:
    """Run all cases, many of them concurrently. Return the differences, one line each."""
    async with watching(client) as watched:
        return [line for batch in batches(cases) for line in await _replay_batch(client, watched, batch)]


def batches(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Divide the cases, because groups that need an exclusive rack cannot be scheduled next to other groups."""
    alone = [case for case in cases if labels.EXCLUSIVE_TOPOLOGY in meta.annotations(case["input"])]
    return alone, [case for case in cases if case not in alone]


async def _replay_batch(client: Client, watched: Watched, cases: Sequence[Case]) -> list[str]:
    lines: list[str] = []
    for phase, act in (("created", _post), ("edited", _edit)):
        for case in cases:
            lines += await act(client, case)
        await watched.settle(partial(_is_equal, watched, cases, phase))
        lines += _differing(watched, cases, phase)
    lines += await _missing_events(client, cases)
    await clear(client, watched, cases)
    return lines


async def clear(client: Client, watched: Watched, cases: Sequence[Case]) -> None:
    """Delete the LeaderWorkerSets of the cases, and wait until all owned objects are deleted."""
    await remove(client, watched, *map(_key, cases))


async def remove(client: Client, watched: Watched, *keys: ObjectKey) -> None:
    """Delete LeaderWorkerSets, and wait until all owned objects are deleted."""
    for key in keys:
        await client.delete(LEADERWORKERSETS, key, propagation="Background")
    await watched.settle(lambda: not _of_leaderworkersets(watched), STALL)
    assert _of_leaderworkersets(watched) == []


def _of_leaderworkersets(watched: Watched) -> list[str]:
    return [meta.name(obj) for obj in watched.objects() if labels.NAME in meta.labels(obj)]


async def _missing_events(client: Client, cases: Sequence[Case]) -> list[str]:
    """Return the recorded events that are still missing after a wait, except events about intermediate steps."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while missing := await _untold(client, cases):
        if asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(QUIET)
    return missing


async def _untold(client: Client, cases: Sequence[Case]) -> list[str]:
    events = (await client.list(EVENTS, namespace=NAMESPACE)).items
    told = {
        (event["regarding"]["name"], f"{event['type']} {event['reason']} {event['action']}: {note}")
        for event in events
        if event["regarding"]["kind"] == LEADERWORKERSETS.kind
        for note in one_by_one(event["regarding"]["name"], event["note"])
    }
    return [
        f"{meta.name(case['input'])}/events: is missing: {text}"
        for case in cases
        for text in case["events"]
        if not any(step in text for step in STEPS) and (meta.name(case["input"]), text) not in told
    ]


def one_by_one(name: str, note: str) -> list[str]:
    """Return the separate event messages of the Go manager for one message about many groups (contract 8.3).

    >>> one_by_one("web", "Created worker statefulsets for groups 0,3-4")[1:]
    ['Created worker statefulset for leader pod web-3', 'Created worker statefulset for leader pod web-4']
    """
    together = re.fullmatch("Created worker statefulsets for groups ([0-9,-]+)", note)
    if together is None:
        return [note]
    ends = [[int(end) for end in found.split("-")] for found in together[1].split(",")]
    groups = [group for found in ends for group in range(found[0], found[-1] + 1)]
    return [f"Created worker statefulset for leader pod {name}-{group}" for group in groups]


def _key(case: Case) -> ObjectKey:
    return ObjectKey(NAMESPACE, meta.name(case["input"]))


def _is_equal(watched: Watched, cases: Sequence[Case], phase: str) -> bool:
    return not _differing(watched, cases, phase)


def _differing(watched: Watched, cases: Sequence[Case], phase: str) -> list[str]:
    by_name: dict[str, list[JSONObject]] = {}
    for obj in watched.objects():
        is_lws = obj["kind"] == LEADERWORKERSETS.kind
        name = meta.name(obj) if is_lws else meta.labels(obj).get(labels.NAME, "")
        if is_recorded(obj, name):
            by_name.setdefault(name, []).append(normalize(obj))
    lines = []
    for case in cases:
        name = case["input"]["metadata"]["name"]
        expected = case["created" if phase == "created" else "edited"]
        lines += [f"{name}/{phase}: {line}" for line in differences(expected, by_name.get(name, []))]
    return lines


async def _post(client: Client, case: Case) -> list[str]:
    metadata = case["input"]["metadata"] | {"namespace": NAMESPACE}
    name = metadata["name"]
    try:
        await client.create(LEADERWORKERSETS, case["input"] | {"metadata": metadata})
    except APIError as error:
        return _compare_refusal(case, f"{name}/create", error)
    return _compare_refusal(case, f"{name}/create", None)


async def _edit(client: Client, case: Case) -> list[str]:
    name = case["input"]["metadata"]["name"]
    while case["edit"]:
        live = await client.get(LEADERWORKERSETS, _key(case))
        try:
            await client.update(LEADERWORKERSETS, jsonpatch.apply_patch(live, case["edit"]))
        except ConflictError:
            continue
        except APIError as error:
            return _compare_refusal(case, f"{name}/edit", error)
        return _compare_refusal(case, f"{name}/edit", None)
    return []


def _compare_refusal(case: Case, step: str, error: APIError | None) -> list[str]:
    expected = case["refused"].get(step)
    found = None if error is None else [error.code, error.message]
    return [] if expected == found else [f"{step}: recorded refusal {expected}, found {found}"]
