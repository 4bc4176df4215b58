"""Somebody who stores hostile objects in one namespace (`hostile.py`), changes them while they are there, and deletes them."""

import asyncio
import re
from collections import Counter, deque
from collections.abc import Awaitable
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any, Final

from tests import hostile

from kuberuntime.client.client import Client
from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, STATEFULSETS, Resource
from kuberuntime.plan import Propagation
from leaderworkerset.api.resources import LEADERWORKERSETS, ROLE_SCALERS

LATER: Final = 0.5
"""The share of objects that receive the project's labels only after their creation, when no webhook checks them."""

HARMED: Final = 0.3
"""The share of writes after which an existing object is changed."""

HELD: Final = 60
"""The maximum number of objects with finalizers at the same time, many of which are already deleted."""

PROPAGATIONS: Final[tuple[Propagation | None, ...]] = (None, "Foreground", "Orphan", "Background")
WITH_STATUS: Final = (PODS, STATEFULSETS, *hostile.PRODUCT)


@dataclass
class Attacker:
    """The attempts: what was `tried`, the number of each kind that was `stored`, and what the API server `refused`.

    Each of several writers keeps a number of objects, and pauses for some seconds after each.
    """

    client: Client
    namespace: str
    chance: Random
    kept: int = 100
    pause: float = 0.0
    tried: int = 0
    stored: Counter[Resource] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    _held: deque[tuple[Resource, ObjectKey]] = field(default_factory=deque)

    async def attack(self, most: float = inf, *, at_once: int = 4) -> None:
        """Store the given number of objects, change them while they exist, and delete the earlier ones."""
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._store(most))

    async def clear(self) -> None:
        """Delete everything without listing, as some objects cannot be decoded."""
        for resource in self.stored:
            await self.client.delete_collection(resource, self.namespace)
        for resource, key in self._held:
            await self._attempt(resource, self._release(resource, key))

    async def _store(self, most: float) -> None:
        kept: list[tuple[Resource, ObjectKey]] = []
        while self.stored.total() < most:
            await asyncio.sleep(self.pause)
            self.tried += 1
            resource, obj = hostile.make(self.chance, self.namespace, self.tried)
            if await self._attempt(resource, self._create(resource, obj)) is not None:
                self.stored[resource] += 1
                kept.append((resource, meta.key(obj)))
                self._held.extend(kept[-1:] * ("finalizers" in meta.metadata(obj)))
            if kept and self.chance.random() < HARMED:
                await self._harm(*self.chance.choice(kept))
            if len(kept) > self.kept:
                chosen = kept.pop(self.chance.randrange(self.kept))
                await self._attempt(chosen[0], self._delete(*chosen))
            if len(self._held) > HELD:
                held = self._held.popleft()
                await self._attempt(held[0], self._release(*held))

    async def _attempt(self, resource: Resource, call: Awaitable[JSONObject]) -> JSONObject | None:
        """Send a request that the API server may reject, and count rejections."""
        try:
            return await call
        except APIError as error:
            self.refused[f"{resource.plural}: {re.sub('[0-9]+', 'N', str(error))}"[:120]] += 1
            return None

    async def _create(self, resource: Resource, obj: JSONObject) -> JSONObject:
        if resource != PODS or self.chance.random() > LATER:
            return await self.client.create(resource, obj)
        whole = meta.metadata(obj)
        plain = {name: value for name, value in whole.items() if name not in {"labels", "annotations"}}
        await self.client.create(resource, obj | {"metadata": plain})
        return await self._merge(resource, meta.key(obj), _marks(whole))

    async def _harm(self, resource: Resource, key: ObjectKey) -> None:
        """Write a status, scale up and down like an autoscaler without stabilization, or set another owner."""
        status = {"status": hostile.status(self.chance, resource)}
        replicas = {"spec": {"replicas": 0 if key.name.startswith(hostile.LARGE) else self.chance.randrange(2)}}
        if resource in WITH_STATUS and self.chance.random() < 0.5:
            await self._attempt(resource, self._merge(resource, key, status, "status"))
        elif resource in (LEADERWORKERSETS, ROLE_SCALERS):
            await self._attempt(resource, self._merge(resource, key, replicas, "scale"))
        else:
            marks = _marks(hostile.disguise(self.chance, key.namespace))
            await self._attempt(resource, self._merge(resource, key, marks))

    async def _delete(self, resource: Resource, key: ObjectKey) -> JSONObject:
        propagation = self.chance.choice(PROPAGATIONS)
        grace = self.chance.choice((None, 0, 1, 3600))
        return await self.client.delete(resource, key, propagation=propagation, grace_period=grace)

    async def _release(self, resource: Resource, key: ObjectKey) -> JSONObject:
        return await self._merge(resource, key, {"metadata": {"finalizers": None}})

    async def _merge(self, resource: Resource, key: ObjectKey, patch: Any, subresource: str = "") -> JSONObject:
        return await self.client.patch(resource, key, patch, kind="merge", subresource=subresource)


def _marks(metadata: JSONObject) -> JSONObject:
    return {"metadata": {name: metadata[name] for name in ("labels", "annotations")}}
