"""Creates the claims for generic ephemeral volumes. The pod owns its claims, which are deleted with the pod.

Mirrors `pkg/controller/volume/ephemeral`. If a different object owns a claim with the same name, the claim is not
changed. The scheduler and the kubelet report this, and the pod waits until the claim is deleted.
"""

from collections.abc import Iterator

from msgspec import Struct

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta, podclaims, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PERSISTENT_VOLUME_CLAIMS
from kuberuntime.plan import Create, Plan
from localkube.controllers.volumes.volumebinder import BY_CLAIM


class EphemeralVolumeController(Struct, frozen=True):
    """Creates claims for pods. `pods` has the index of `VolumeBinder`."""

    pods: Informer
    claims: Informer

    def watches(self) -> tuple[Watch, ...]:
        """Return the watches, with the pods that a change affects."""
        return Watch(self.pods, lambda change: [meta.key(change.object)]), Watch(self.claims, self._pods_of)

    async def plan(self, key: ObjectKey) -> Plan:
        """Create the missing claims of a pod."""
        pod = self.pods.store.get(key)
        if pod is None or meta.is_deleting(pod) or podstate.has_ended(pod):
            return Plan()
        claims = [build(pod, volume, template) for volume, template in podclaims.ephemeral_templates(pod).items()]
        missing = [claim for claim in claims if self.claims.store.get(meta.key(claim)) is None]
        return Plan(tuple(Create(resource=PERSISTENT_VOLUME_CLAIMS, object=claim, if_absent=True) for claim in missing))

    def _pods_of(self, change: Change) -> Iterator[ObjectKey]:
        """Yield the pods that mount a deleted claim, which a previous pod with the same name owned."""
        if change.new is None:
            yield from map(meta.key, self.pods.store.by_index(BY_CLAIM, str(meta.key(change.object))))


def build(pod: JSONObject, volume: str, template: JSONObject) -> JSONObject:
    """Build the claim for an ephemeral volume."""
    metadata = {
        name: meta.metadata(template)[name] for name in ("labels", "annotations") if name in meta.metadata(template)
    }
    own = {
        "name": podclaims.claims_by_volume(pod)[volume],
        "namespace": meta.namespace(pod),
        "ownerReferences": [meta.controller_reference(pod)],
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata | own,
        "spec": meta.spec(template),
    }
