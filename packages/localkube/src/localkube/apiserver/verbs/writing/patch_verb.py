"""Implements PATCH of an object or a subresource: JSON patch, merge patch, strategic merge patch, server-side apply.

In: a call whose content type is the patch type. Out: the object as stored, and whether an apply created it.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, required_error
from kuberuntime.objects.field import Kind as FieldKind
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.patch import apply, json_patch, merge, strategic
from localkube.apiserver.requests import body, options
from localkube.apiserver.requests.call import Call
from localkube.apiserver.requests.options import WriteOptions
from localkube.apiserver.storage.storeerrors import ExistsError
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.writing import create, update, writesteps
from localkube.apiserver.verbs.writing.update import Edit

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
Patcher: TypeAlias = Callable[[JSONObject], JSON]

STATUS_PARTS: Final = {"apiVersion", "kind", "metadata", "status"}
ACCEPTED: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


async def patch(backend: Backend, call: Call) -> tuple[int, JSONObject, WriteOptions]:
    """Patch the object. Return the code and object of the response."""
    write_options = options.parse(call, "PatchOptions")
    if body.media_type(call.headers) == APPLY_PATCH:
        return await _apply(backend, call, write_options)
    patched = build_patcher(call)

    def patched_object(old: JSONObject) -> JSONObject:
        obj = patched(old)
        if not isinstance(obj, dict):
            raise apierrors.undecodable("PATCH", call.body, "the patched value is not an object")
        _check_fields(call, obj, write_options)
        obj = body.with_identity(call, obj)
        body.require_name(call, obj)
        return obj

    return (
        200,
        await update.edit_object(backend, call, Edit(update.write_operation(call), patched_object), write_options),
        write_options,
    )


def build_patcher(call: Call) -> Patcher:
    """Return a function that performs the JSON, merge or strategic merge patch of a call."""
    if "force" in call.query:
        error = FieldError(FieldKind.FORBIDDEN, "force", detail="may not be specified for non-apply patch")
        raise apierrors.invalid("meta.k8s.io", "PatchOptions", "", [error])
    media = body.media_type(call.headers)
    accepted = [media_type for media_type in ACCEPTED if not (call.served.is_custom and media_type == STRATEGIC_PATCH)]
    if media not in accepted:
        raise apierrors.unsupported_media_type(accepted)
    content = body.parse_json(call.body)
    if media == JSON_PATCH:
        return lambda old: json_patch.apply(old, content)
    if not isinstance(content, dict):
        raise apierrors.bad_request("the body of a merge patch must be an object")
    if media == MERGE_PATCH:
        return lambda old: merge.apply(old, content)
    return lambda old: strategic.apply(old, content, call.served.kind.schema)


def _check_fields(call: Call, obj: JSONObject, write_options: WriteOptions) -> None:
    texts = options.unknown_fields(call.served.kind, obj, write_options)
    if texts and write_options.validation == "Strict":
        raise apierrors.undecodable("PATCH", call.body, f"strict decoding error: {', '.join(texts)}")
    write_options.warnings.extend(texts)


async def _apply(backend: Backend, call: Call, write_options: WriteOptions) -> tuple[int, JSONObject, WriteOptions]:
    """Apply the object server-side. If it does not exist, create it."""
    if not call.query.get("fieldManager"):
        error = required_error("fieldManager", "is required for apply patch")
        raise apierrors.invalid("meta.k8s.io", "PatchOptions", "", [error])
    applied = _parse_applied(call)
    force = call.flag("force")
    writer = writesteps.build_writer(backend, call, write_options, "Apply")

    def applied_object(old: JSONObject | None) -> JSONObject:
        return apply.apply(call.served.kind, old, applied, writer, force=force)

    while True:
        if backend.store.get(call.key) is not None:
            edit = Edit(update.write_operation(call), applied_object, has_managed_fields=True)
            return 200, await update.edit_object(backend, call, edit, write_options), write_options
        if call.subresource:
            raise apierrors.not_found(call.served.resource, call.name)
        if meta.uid(applied):
            why = (
                f"uid mismatch: the provided object specified uid {meta.uid(applied)}, and no existing object was found"
            )
            raise apierrors.conflict(call.served.resource, call.name, why)
        try:
            return (
                201,
                await create.create_object(backend, call, applied_object(None), write_options, owned=True),
                write_options,
            )
        except ExistsError:
            continue


def _writable_fields(call: Call, applied: JSONObject) -> JSONObject:
    """Return the writable fields of this call, which are all fields except the status, or only the status."""
    if call.subresource == "status":
        return {name: value for name, value in applied.items() if name in STATUS_PARTS}
    unwritable = {"status"} if call.served.kind.has_status else set()
    return {name: value for name, value in applied.items() if name not in unwritable}


def _parse_applied(call: Call) -> JSONObject:
    """Parse the applied configuration. Raise an error for a different object or unknown fields."""
    content = body.parse_yaml(call.body) if not call.body.lstrip().startswith(b"{") else body.parse_json(call.body)
    if not isinstance(content, dict):
        raise apierrors.bad_request("error decoding YAML: the body is not an object")
    kind, resource = content.get("kind"), call.served.resource
    if kind and kind != resource.kind:
        raise apierrors.bad_request(f"invalid object type: /{content.get('apiVersion')}, Kind={kind}")
    applied = body.with_identity(call, content)
    body.require_name(call, applied)
    applied = _writable_fields(call, applied)
    unknown = call.served.kind.unknown_fields(applied)
    if unknown:
        place = f"{(content.get('metadata') or {}).get('namespace', '')}/{call.name}"
        errors = [f".{path}: field not declared in schema" for path in unknown]
        details = errors[0] if len(errors) == 1 else "errors:\n" + "\n".join(f"  {error}" for error in errors)
        what = f"({place}; {resource.group}/{resource.version}, Kind={resource.kind})"
        raise apierrors.StatusError(500, "", f"failed to create typed patch object {what}: {details}")
    return applied
