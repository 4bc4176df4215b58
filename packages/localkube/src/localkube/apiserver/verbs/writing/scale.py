"""Implements the `/scale` subresource, which represents the replicas of a scalable kind as autoscaling/v1 Scale."""

from typing import Annotated, Any, Literal, cast

import msgspec

from kuberuntime.objects import meta, selectors
from kuberuntime.objects.field import invalid
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.kind import ScalePaths
from localkube.apiserver.requests import body, options
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.options import WriteOptions
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading.get import get
from localkube.apiserver.verbs.writing import patch_verb, update
from localkube.apiserver.verbs.writing.update import Edit

KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScaleIdentity(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a Scale, which are preconditions for the object and its version."""

    uid: str | None = None
    resource_version: str | None = None


class ScaleSpec(msgspec.Struct, frozen=True):
    """The spec of a Scale. Null replicas are treated as 0."""

    replicas: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = 0


class ScaleBody(msgspec.Struct, frozen=True, rename="camel"):
    """A Scale in the form that clients send."""

    kind: Literal["Scale", ""] = "Scale"
    api_version: Literal["autoscaling/v1", ""] = "autoscaling/v1"
    metadata: ScaleIdentity = ScaleIdentity()
    spec: ScaleSpec | None = ScaleSpec()

    @property
    def replicas(self) -> int:
        """Return the requested replicas, or 0 if the replicas or the spec are null."""
        return (self.spec.replicas if self.spec else None) or 0


async def get_scale(backend: Backend, call: Call) -> JSONObject:
    """Return the scale of an object."""
    return build_scale(call, get(backend, call))


async def update_scale(backend: Backend, call: Call) -> JSONObject:
    """Set the replicas of an object to the replicas of the Scale in the body."""
    write_options = options.parse(call, "UpdateOptions")
    sent = body.parse(call.body, body.media_type(call.headers))
    _parse_scale(call, sent)
    body.require_name(call, cast("JSONObject", sent))
    return await _scale(backend, call, write_options, lambda _: sent)


async def patch_scale(backend: Backend, call: Call) -> JSONObject:
    """Patch the Scale of an object, and set its replicas accordingly."""
    write_options = options.parse(call, "PatchOptions")
    return await _scale(backend, call, write_options, patch_verb.build_patcher(call))


async def _scale(backend: Backend, call: Call, write_options: WriteOptions, patcher: patch_verb.Patcher) -> JSONObject:
    def apply(old: JSONObject) -> JSONObject:
        scale = _parse_scale(call, patcher(build_scale(call, old)))
        sent = {"uid": scale.metadata.uid, "resourceVersion": scale.metadata.resource_version}
        scaled: JSONObject = _set_path(old, _split_path(_scale_paths(call).spec_replicas), scale.replicas)
        return {**scaled, "metadata": meta.metadata(old) | {name: value for name, value in sent.items() if value}}

    return build_scale(call, await update.edit_object(backend, call, Edit("update", apply), write_options))


def build_scale(call: Call, obj: JSONObject) -> JSONObject:
    """Build the Scale of an object."""
    paths = _scale_paths(call)
    replicas = meta.at(obj, _split_path(paths.spec_replicas))
    status: JSONObject = {"replicas": meta.at(obj, _split_path(paths.status_replicas)) or 0}
    selector = meta.at(obj, _split_path(paths.selector)) if paths.selector else None
    if selector:
        status["selector"] = selector if isinstance(selector, str) else str(selectors.from_object(selector))
    metadata = meta.metadata(obj)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in KEPT if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _parse_scale(call: Call, content: JSON) -> ScaleBody:
    """Parse a Scale. Raise an error if it is malformed or has negative replicas."""
    try:
        scale = msgspec.convert(content, ScaleBody)
    except msgspec.ValidationError as error:
        text = f"the body must be a Scale of autoscaling/v1: {error}"
        raise apierrors.undecodable(call.method, call.body, text) from error
    if scale.replicas < 0 and not call.served.is_custom:
        failure = invalid("spec.replicas", scale.replicas, "must be greater than or equal to 0")
        raise apierrors.invalid("autoscaling", "Scale", call.name, [failure])
    return scale


def _scale_paths(call: Call) -> ScalePaths:
    paths = call.served.kind.scale
    if paths is None:
        raise apierrors.unknown_resource()
    return paths


def _split_path(path: str) -> list[str]:
    """Split a dotted JSON path such as `.spec.replicas`."""
    return path.strip(".").split(".")


def _set_path(obj: JSON, parts: list[str], value: JSON) -> Any:
    if not parts:
        return value
    base = obj if isinstance(obj, dict) else {}
    return {**base, parts[0]: _set_path(base.get(parts[0]), parts[1:], value)}
