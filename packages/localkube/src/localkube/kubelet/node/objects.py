"""Reads the API objects that pods refer to: ConfigMaps and Secrets from a cache, and claims with requests."""

import base64
import binascii
from collections.abc import Callable, Mapping

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.objects import meta, podclaims
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS
from localkube.kubelet.spec import environment, podspec
from localkube.kubelet.spec.environment import ReferencedObjects
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.volumes import payload
from localkube.kubelet.volumes.directories import Claims


class ReferencedObjectReader:
    """Reads ConfigMaps, Secrets, claims and volumes, from the API server if they are not cached yet."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.config_maps = Informer(client, CONFIG_MAPS)
        self.secrets = Informer(client, SECRETS)
        self.claims = Informer(client, PERSISTENT_VOLUME_CLAIMS)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return the required informers."""
        return (self.config_maps, self.secrets, self.claims)

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Register a callback for every change to a ConfigMap or Secret."""
        self.config_maps.subscribe(callback)
        self.secrets.subscribe(callback)

    async def sources(self, pod: JSONObject) -> ReferencedObjects:
        """Return the existing ConfigMaps and Secrets that the pod's containers and volumes refer to."""
        config_maps, secrets = references(pod)
        maps_by_name = {name: await self._find(self.config_maps, pod, name) for name in sorted(config_maps)}
        secrets_by_name = {name: await self._find(self.secrets, pod, name) for name in sorted(secrets)}
        return ReferencedObjects(
            {name: config_map_data(config_map) for name, config_map in maps_by_name.items() if config_map},
            {name: secret_data(secret) for name, secret in secrets_by_name.items() if secret},
            {name: config_map_binary(config_map) for name, config_map in maps_by_name.items() if config_map},
        )

    async def claims_of(self, pod: JSONObject) -> Claims:
        """Return the existing claims that the pod refers to, and the persistent volumes to which they are bound."""
        claims = {name: await self._find(self.claims, pod, name) for name in podclaims.claims_by_volume(pod).values()}
        existing_claims = {name: claim for name, claim in claims.items() if claim}
        bound = {str(meta.spec(claim).get("volumeName") or "") for claim in existing_claims.values()} - {""}
        volumes = {name: await self._client.find(PERSISTENT_VOLUMES, ObjectKey("", name)) for name in sorted(bound)}
        return Claims(existing_claims, {name: volume for name, volume in volumes.items() if volume})

    async def _find(self, informer: Informer, pod: JSONObject, name: str) -> JSONObject | None:
        key = ObjectKey(meta.namespace(pod), name)
        return informer.store.get(key) or await self._client.find(informer.resource, key)


def references(pod: JSONObject) -> tuple[set[str], set[str]]:
    """Return the names of all ConfigMaps and Secrets that the pod refers to."""
    pairs = [environment.references(container) for container in podspec.all_containers(pod)]
    pairs += [payload.references(volume) for volume in meta.spec(pod).get("volumes") or []]
    config_maps = {name for names, _ in pairs for name in names} - {""}
    return config_maps, {name for _, names in pairs for name in names} - {""}


def config_map_data(config_map: JSONObject) -> dict[str, bytes]:
    """Return `data`."""
    texts: Mapping[str, str] = config_map.get("data") or {}
    return {key: value.encode() for key, value in texts.items()}


def config_map_binary(config_map: JSONObject) -> dict[str, bytes]:
    """Return the decoded `binaryData`."""
    return _decode_data(config_map, "binaryData")


def secret_data(secret: JSONObject) -> dict[str, bytes]:
    """Return the decoded `data`."""
    return _decode_data(secret, "data")


def _decode_data(obj: JSONObject, field: str) -> dict[str, bytes]:
    values: Mapping[str, str] = obj.get(field) or {}
    decoded = {}
    for key, value in values.items():
        try:
            decoded[key] = base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise SpecError(
                f"{obj.get('kind', 'object')} {meta.key(obj)}, {field}[{key}]: invalid base64: {error}"
            ) from error
    return decoded
