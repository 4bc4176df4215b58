"""Defines ConfigMaps, Secrets and ServiceAccounts."""

import base64
import re
from collections.abc import Iterator

from kuberuntime.objects import resources
from kuberuntime.objects.field import FieldError, Kind, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules.values import forbidden, validate_immutable
from localkube.apiserver.builtin.strategy import Strategy

KEY = re.compile(r"[-._a-zA-Z0-9]+")
KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',"
    "  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
KEY_MAX = 253
DATA_MAX = 1024 * 1024
FROZEN_TEXT = "field is immutable when `immutable` is set"

KEYS_OF_TYPE = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def validate_config_map(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of a ConfigMap or of a change to it."""
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    yield from _validate_keys(data, "data")
    yield from _validate_keys(binary, "binaryData")
    for key in data:
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _validate_size(sum(len(value.encode()) for value in data.values()) + _decoded_size(binary), "")
    yield from _validate_frozen(new, old, ("data", "binaryData"))


def default_secret(secret: JSONObject) -> None:
    """Move `stringData` into `data`."""
    plain = secret.pop("stringData", {})
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = secret.get("data", {}) | encoded


def validate_secret(new: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """Yield the validation errors of a Secret or of a change to it."""
    data = new.get("data") or {}
    yield from _validate_keys(data, "data")
    yield from _validate_size(_decoded_size(data), "data")
    for key in KEYS_OF_TYPE.get(new["type"], ()):
        if key not in data:
            yield required_error(f"data[{key}]")
    if old is not None:
        yield from validate_immutable(new["type"], old["type"], "type")
    yield from _validate_frozen(new, old, ("data",))


def _validate_keys(data: JSONObject, path: str) -> Iterator[FieldError]:
    for key in data:
        if len(key) > KEY_MAX:
            yield invalid(f"{path}[{key}]", key, f"must be no more than {KEY_MAX} characters")
        if not KEY.fullmatch(key):
            yield invalid(f"{path}[{key}]", key, KEY_TEXT)
        elif key in {".", ".."} or key.startswith(".."):
            text = f"must not be '{key}'" if key in {".", ".."} else "must not start with '..'"
            yield invalid(f"{path}[{key}]", key, text)


def _decoded_size(data: JSONObject) -> int:
    return sum(len(value) * 3 // 4 for value in data.values())


def _validate_size(size: int, path: str) -> Iterator[FieldError]:
    if size > DATA_MAX:
        yield FieldError(Kind.TOO_LONG, path, detail=f"may not be more than {DATA_MAX} bytes")


def _validate_frozen(new: JSONObject, old: JSONObject | None, fields: tuple[str, ...]) -> Iterator[FieldError]:
    if old is None or not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", FROZEN_TEXT)
    for field in fields:
        if new.get(field) != old.get(field):
            yield forbidden(field, FROZEN_TEXT)


CONFIG_MAP = Strategy(
    resource=resources.CONFIG_MAPS,
    struct="ConfigMap",
    description="A ConfigMap contains settings that pods read as environment variables or files.",
    validate=validate_config_map,
    short_names=("cm",),
)

SECRET = Strategy(
    resource=resources.SECRETS,
    struct="Secret",
    description="A Secret contains confidential data, such as tokens and keys.",
    default=default_secret,
    validate=validate_secret,
)

SERVICE_ACCOUNT = Strategy(
    resource=resources.SERVICE_ACCOUNTS,
    struct="ServiceAccount",
    description="A ServiceAccount provides an identity for the processes of a pod.",
    short_names=("sa",),
)
