"""The seam between the keeper of faults and what they do: an effect begins, and is undone."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from kuberuntime.objects.meta import JSONObject, ObjectKey
from localkube.faults.fault import Fault

Undo: TypeAlias = Callable[[], Awaitable[None]]


class Effect(Protocol):
    """Makes faults of some kinds happen."""

    async def begin(self, fault: Fault) -> Undo:
        """Make it happen; return what undoes it. Raise `FaultError` or `StartError` if it cannot be."""
        ...


class Pods(Protocol):
    """The pods of this machine, as faults see them."""

    async def pod(self, key: ObjectKey) -> JSONObject:
        """Return a pod that has an address; raise `FaultError` otherwise."""
        ...

    def running(self, pod: JSONObject) -> list[str]:
        """Return the names by which the runner knows its running containers; raise `FaultError` if it has none."""
        ...


async def nothing() -> None:
    """Undo what needs no undoing."""
