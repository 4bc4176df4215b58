"""The values of ConfigMaps and Secrets as bytes. Pure."""

import base64
import binascii
from collections.abc import Mapping

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec.podspec import SpecError


def config_map_data(config_map: JSONObject) -> dict[str, bytes]:
    """Return `data`."""
    texts: Mapping[str, str] = config_map.get("data") or {}
    return {key: value.encode() for key, value in texts.items()}


def config_map_binary(config_map: JSONObject) -> dict[str, bytes]:
    """Return the decoded `binaryData`."""
    return _decoded(config_map, "binaryData")


def secret_data(secret: JSONObject) -> dict[str, bytes]:
    """Return the decoded `data`."""
    return _decoded(secret, "data")


def _decoded(obj: JSONObject, field: str) -> dict[str, bytes]:
    values: Mapping[str, str] = obj.get(field) or {}
    decoded = {}
    for key, value in values.items():
        try:
            decoded[key] = base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise SpecError(
                f"{obj.get('kind', 'object')} {meta.key(obj)}, {field}[{key}]: not base64: {error}"
            ) from error
    return decoded
