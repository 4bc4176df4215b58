"""Sends requests continuously to detect times without webhooks."""

import asyncio
from typing import Final

from testkit.examples import IS_THOROUGH
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import until

from kuberuntime.errors import KubeError
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api.resources import LEADERWORKERSETS

PAUSE: Final = 0.05 if IS_THOROUGH else 0.2
"""The interval in seconds between a deletion and the next creation. Webhook outages last longer."""


class Stream:
    """Continuously creates and deletes LeaderWorkerSets, and records rejections."""

    def __init__(self, space: CheckedNamespace) -> None:
        self.space = space
        self.created = 0
        self.refused: list[str] = []

    async def run(self) -> None:
        while True:
            try:
                await self.space.create_groups(f"loop-{self.created}", replicas=0, size=2)
                await self.space.client.delete(
                    LEADERWORKERSETS, ObjectKey(self.space.namespace, f"loop-{self.created}")
                )
            except KubeError as error:
                self.refused.append(str(error))
            self.created += 1
            await asyncio.sleep(PAUSE)

    async def go_on(self, count: int) -> None:
        """Wait until more LeaderWorkerSets were created."""
        wanted = self.created + count

        async def reached() -> bool:
            return self.created >= wanted

        await until(reached)
