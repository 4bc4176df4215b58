"""Tests edits of all fields of operand objects on a real API server. The operator reverts or tolerates them.

One field in twelve, and those of the lists below; `EVERY=1` in the environment edits all.
"""

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

import msgspec
import pytest
from tests.kubernetes.lwsoperator import certmanager
from tests.kubernetes.lwsoperator.conftest import OperatorCluster
from tests.kubernetes.lwsoperator.fieldedits import Edit, Schemas

from kuberuntime.access import kubeconfig
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.transport import Request
from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.install.installsettings import SERVICE_MONITORS
from leaderworkerset.install.operatornames import OPERATOR, OWNED_BY, OWNED_LABEL, SPEC_HASH
from leaderworkerset.operator import operand

pytestmark = pytest.mark.slow

SECONDS: Final = 5.0
"""The limit for the median time until an edit is reverted. A busy machine delays some edits."""

EVERY: Final = int(os.environ.get("EVERY") or 12)
"""The number of fields from which one is selected and edited."""

LOST: Final = 60.0
"""The time after which an edit is counted as not reverted."""

TOLERATED: Final[Mapping[str, str]] = {
    r".* added metadata\.(labels|annotations)\.drift\.example\.com": "labels and annotations of others",
    r"ServiceAccount added (imagePullSecrets|secrets)": "pull secrets of administrators and OpenShift",
    r".*WebhookConfiguration changed webhooks\.0\.name": "restored without the authority of that name, which is injected again",
    r"Service (added|changed|removed) spec\.(ipFamilyPolicy|ipFamilies)(\..*)?": "allocated by the API server",
}
"""Edits that are not reverted, with the reasons."""

MUST: Final = (
    "Service added spec.selector.drift.example.com",
    "MutatingWebhookConfiguration added webhooks.0.namespaceSelector.matchLabels",
    "MutatingWebhookConfiguration added webhooks.0.matchConditions.-",
    "Deployment added spec.paused",
    "Deployment added spec.template.spec.hostNetwork",
    "Deployment added spec.template.spec.nodeSelector",
    "Deployment added spec.template.spec.containers.0.env",
    "NetworkPolicy added spec.podSelector.matchLabels.drift.example.com",
    "PodDisruptionBudget added spec.selector.matchLabels.drift.example.com",
    "ClusterRole added aggregationRule",
    "ConfigMap added data.drift.example.com",
    "ConfigMap added immutable",
)
"""Edits that must be generated."""


def is_tolerated(name: str) -> bool:
    """Return whether the edit may remain."""
    return any(re.fullmatch(pattern, name) for pattern in TOLERATED)


@dataclass
class Tally:
    """The results of all edits of one kind."""

    restored: Counter[str] = field(default_factory=Counter)
    names: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    stayed: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def comparable(obj: JSONObject) -> JSONObject:
    """Return the fields of an object that the operator manages and that an edit changes."""
    own = meta.metadata(obj)
    annotations = {name: text for name, text in meta.annotations(obj).items() if name != REVISION}
    kept = {"labels": meta.labels(obj), "annotations": annotations, "ownerReferences": own.get("ownerReferences")}
    found = {name: value for name, value in obj.items() if name != "status"} | {"metadata": kept}
    if obj["kind"] == "Service":  # its addresses differ if its type was changed in the meantime
        found["spec"] = {name: value for name, value in obj["spec"].items() if name not in ("clusterIP", "clusterIPs")}
    return found


REVISION: Final = "deployment.kubernetes.io/revision"


class Editor:
    """An administrator who manually edits an operand object."""

    def __init__(self, client: Client, kind: Resource, obj: JSONObject) -> None:
        self._client = client
        self._kind = kind
        self._key = meta.key(obj)
        self._wanted = comparable(obj)
        self.tally = Tally()

    async def try_all(self) -> Tally:
        """Perform each edit that the API server accepts, and record its result."""
        for number, edit in enumerate(await self._edits()):
            name = f"{self._kind.kind} {edit}"
            if number % EVERY and name not in MUST and not is_tolerated(name):
                continue
            patch = await self._accepted(edit)
            if patch is None:
                self.tally.refused.append(str(edit))
            else:
                await self._try(name, edit, patch)
        return self.tally

    async def _edits(self) -> list[Edit]:
        group = f"apis/{self._kind.api_version}" if self._kind.group else f"api/{self._kind.api_version}"
        answer = await self._client.send(Request("GET", f"/openapi/v3/{group}"))
        schemas = Schemas(msgspec.json.decode(answer.body))
        obj = await self._client.get(self._kind, self._key)
        return [*schemas.edits(obj, schemas.of_kind(self._kind.kind))]

    async def _accepted(self, edit: Edit) -> Sequence[Mapping[str, Any]] | None:
        for patch in edit.patches:
            try:
                answer = await self._client.try_patch(self._kind, self._key, patch, kind="json")
            except APIError:
                continue
            if comparable(answer) != self._wanted:
                return patch
        return None

    async def _try(self, name: str, edit: Edit, patch: Sequence[Mapping[str, Any]]) -> None:
        self.tally.names.add(name)
        started = time.monotonic()
        await self._client.patch(self._kind, self._key, patch, kind="json")
        if is_tolerated(name):
            await self._await_comparison()
            is_restored = await self._is_restored()
        else:
            is_restored = await self._within(LOST, self._is_restored)
        if is_restored:
            self.tally.restored[edit.what] += 1
            self.tally.seconds.append(time.monotonic() - started)
        else:
            self.tally.stayed.append(name)
            self._wanted = comparable(await self._client.get(self._kind, self._key))

    async def _await_comparison(self) -> None:
        """Wait until the operator has compared the object.

        It restores a missing hash together with all other fields.
        """
        without = {"metadata": {"annotations": {SPEC_HASH: None}}}
        await self._client.patch(self._kind, self._key, without, kind="merge")

        async def is_hashed() -> bool:
            return SPEC_HASH in meta.annotations(await self._client.get(self._kind, self._key))

        assert await self._within(LOST, is_hashed)

    async def _within(self, seconds: float, condition: Callable[[], Awaitable[bool]]) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if await condition():
                return True
            await asyncio.sleep(0.2)
        return False

    async def _is_restored(self) -> bool:
        try:
            return comparable(await self._client.get(self._kind, self._key)) == self._wanted
        except APIError:  # deleted and not yet recreated
            return False


async def first_of_each_kind(client: Client) -> list[tuple[Resource, JSONObject]]:
    """Return an installed object of each operand kind."""
    found = []
    for kind in operand.ORDER:
        listed = await client.list(
            kind, namespace=OPERATOR if kind.namespaced else "", label_selector=f"{OWNED_LABEL}={OWNED_BY}"
        )
        found += [(kind, obj) for obj in listed.items[:1]]
    return found


async def edit_everything(site: OperatorCluster) -> dict[str, Tally]:
    access = kubeconfig.load({}, kubeconfig=str(site.administrator.plane.kubeconfig))
    client = Client(HTTPTransport(access, user_agent="administrator"))
    try:
        editors = {kind.kind: Editor(client, kind, obj) for kind, obj in await first_of_each_kind(client)}
        async with asyncio.TaskGroup() as group:
            for editor in editors.values():
                group.create_task(editor.try_all())
    finally:
        await client.close()
    return {kind: editor.tally for kind, editor in editors.items()}


def test_every_edit_is_restored_or_tolerated_for_a_reason(available: OperatorCluster) -> None:
    """The API server's schemas determine which fields are added, changed and removed (R-OP-25)."""
    available.administrator.kubectl(
        "apply", "--server-side", "-f", "-", objects=[certmanager.definition(SERVICE_MONITORS)]
    )
    available.administrator.await_kind(SERVICE_MONITORS.plural)
    available.await_condition("Progressing", "False", "AsExpected")
    tallies = asyncio.run(edit_everything(available))
    for kind, tally in tallies.items():
        counts = ", ".join(f"{tally.restored[one]} {one}" for one in ("added", "changed", "removed"))
        times = f"{median(tally.seconds):.1f} s, at most {max(tally.seconds):.1f} s"
        print(f"{kind}: {counts}; {len(tally.refused)} refused; {times}; stayed {tally.stayed}")  # noqa: T201 - the counts of the page
        print(*(f"    refused: {one}" for one in tally.refused), sep="\n")  # noqa: T201 - likewise
    stayed = [name for tally in tallies.values() for name in tally.stayed]
    assert [name for name in stayed if not is_tolerated(name)] == []
    assert [pattern for pattern in TOLERATED if not any(re.fullmatch(pattern, name) for name in stayed)] == []
    edited = {name for tally in tallies.values() for name in tally.names}
    assert set(MUST) - edited == set()
    assert median(seconds for tally in tallies.values() for seconds in tally.seconds) < SECONDS
