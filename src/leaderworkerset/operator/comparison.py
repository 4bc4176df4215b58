"""The comparison of live objects with what the API server would make of the desired ones (R-OP-25).

So that defaults, allocated fields and changes by admission are no differences, the API server is asked for the result,
without a write (`dryRun`). It is asked again only for another desired object, or another version of the live one.
"""

from kuberuntime.client.client import Client
from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from leaderworkerset.operator.operand import Objects
from leaderworkerset.operator.operatornames import SPEC_HASH
from leaderworkerset.operator.restoration import Difference, Live, content, is_frozen, merged


class Comparison:
    """Finds the differences, and remembers the version of every live object that is as desired."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._settled: dict[tuple[Resource, ObjectKey], tuple[str, str]] = {}

    async def differing(self, objects: Objects, live: Live) -> list[Difference]:
        """Return the desired objects that are missing or differ, in their order."""
        found = []
        for kind, obj in objects:
            place = kind, meta.key(obj)
            # It may be there without the labels by which the caches select it.
            now = live.get(place) or await self._client.find(*place)
            if now is None or is_frozen(kind, obj, now):
                found.append(Difference(kind, obj, now, anew=now is not None))
                continue
            state = meta.annotations(obj)[SPEC_HASH], meta.resource_version(now)
            if self._settled.get(place) == state:
                continue
            wanted = merged(kind, obj, now)
            if await self._changes(kind, wanted, now):
                found.append(Difference(kind, wanted, now))
            else:
                self._settled[place] = state
        return found

    async def _changes(self, kind: Resource, wanted: JSONObject, live: JSONObject) -> bool:
        try:
            return content(await self._client.update(kind, wanted, dry_run=True)) != content(live)
        except APIError:
            return True  # the write is refused as well, and the status reports it
