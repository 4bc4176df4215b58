"""Implements JSON patch (RFC 6902). The operations of a patch either all succeed, or have no effect.

In: a document and operations. Out: a new, patched document. A patch that is not a list is rejected with 400. An
operation that is malformed, or that does not match the document (a missing path, a failed test), is rejected with 422.
The size of copies and the depth are limited, so that a short patch cannot create a huge document. Replacing an absent
field adds the field, as in kube-apiserver.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kuberuntime.manifests import nesting
from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.patch import equal
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.apierrors import StatusError

MAX_OPERATIONS = 10_000
MAX_COPIED = 3 * 2**20
"""The maximum size in bytes of the JSON that the copy operations of a patch can add, as in kube-apiserver."""


def apply(document: JSON, operations: JSON) -> JSON:
    """Return the document after all operations.

    >>> apply({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}, {"op": "remove", "path": "/a/0"}])
    {'a': [2, 3]}
    """
    if not isinstance(operations, list):
        raise apierrors.bad_request("a JSON patch must be a list of operations")
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path", ""), str):
            raise apierrors.bad_request(
                f"a JSON patch operation must be an object with a path, not {render(operation)}"
            )
    if len(operations) > MAX_OPERATIONS:
        count = len(operations)
        raise StatusError(
            413,
            "RequestEntityTooLarge",
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}",
        )
    copied = 0
    for operation in operations:
        copied += _copied_size(document, operation)
        if copied > MAX_COPIED:
            why = f"the accumulated size increase of copy is {copied}, exceeding the limit {MAX_COPIED}"
            raise _unfit_patch_error(f"Unable to complete the copy, {why}")
        document = _perform(document, operation)
    return document


def _copied_size(document: JSON, operation: JSONObject) -> int:
    if operation.get("op") != "copy":
        return 0
    return len(msgspec.json.encode(_get(document, _source(operation))))


def _perform(document: JSON, operation: JSONObject) -> JSON:
    if not isinstance(operation.get("path"), str):
        raise _unfit_patch_error(f"a JSON patch operation must have an op and a path, not {render(operation)}")
    path = _parse_pointer(operation["path"])
    match operation.get("op"):
        case "add":
            return _add(document, path, operation.get("value"))
        case "remove":
            return _remove(document, path)
        case "replace":
            return _replace(document, path, operation.get("value"))
        case "test":
            _check_equality(document, path, operation)
            return document
        case "copy":
            return _add(document, path, _get(document, _source(operation)))
        case "move":
            return _move(document, _source(operation), path)
        case other:
            raise _unfit_patch_error(f"unknown JSON patch operation {render(other)}")


def _parse_pointer(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise _unfit_patch_error(f"{render(pointer)} is not a JSON pointer, because it does not start with /")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _source(operation: dict[str, Any]) -> list[str]:
    source = operation.get("from")
    if not isinstance(source, str):
        raise _unfit_patch_error(f"the JSON patch operation {render(operation)} requires a from")
    return _parse_pointer(source)


def _check_equality(document: JSON, path: Sequence[str], operation: dict[str, Any]) -> None:
    actual, expected = _get(document, path), operation.get("value")
    if not equal(actual, expected):
        raise _unfit_patch_error(f"testing {operation['path']}: found {render(actual)}, expected {render(expected)}")


def _get(document: JSON, path: Sequence[str]) -> JSON:
    for token in path:
        document = _child(document, token)
    return document


def _move(document: JSON, source: list[str], target: list[str]) -> JSON:
    if target[: len(source)] == source and len(target) > len(source):
        raise _unfit_patch_error(f"cannot move {'/'.join(['', *source])} into itself")
    value = _get(document, source)
    return value if not source else _add(_remove(document, source), target, value)


def _add(document: JSON, path: Sequence[str], value: JSON) -> JSON:
    _check_depth(path, value)

    def add(parent: JSON, token: str) -> JSON:
        if isinstance(parent, dict):
            return {**parent, token: value}
        index = len(parent) if token == "-" else _index(parent, token, len(parent))  # noqa: S105  RFC 6902's "the end"
        return [*parent[:index], value, *parent[index:]]

    return _change(document, path, add) if path else value


def _remove(document: JSON, path: Sequence[str]) -> JSON:
    def remove(parent: JSON, token: str) -> JSON:
        _child(parent, token)
        if isinstance(parent, dict):
            return {key: child for key, child in parent.items() if key != token}
        index = _index(parent, token, len(parent) - 1)
        return [*parent[:index], *parent[index + 1 :]]

    return _change(document, path, remove) if path else None


def _replace(document: JSON, path: Sequence[str], value: JSON) -> JSON:
    _check_depth(path, value)

    def replace(parent: JSON, token: str) -> JSON:
        return {**parent, token: value} if isinstance(parent, dict) else _with_child(parent, token, value)

    return _change(document, path, replace) if path else value


def _check_depth(path: Sequence[str], value: JSON) -> None:
    """Raise an error if a value at this path would make the document too deep."""
    if nesting.is_too_deep(value, max(nesting.MAX_DEPTH - len(path), 0)):
        raise apierrors.bad_request(f"json: {nesting.TOO_DEEP}")


def _change(document: JSON, path: Sequence[str], change: Callable[[JSON, str], JSON]) -> JSON:
    """Copy the objects and lists along `path`. Modify the last object or list."""
    token, rest = path[0], path[1:]
    if not isinstance(document, dict | list):
        raise _unfit_patch_error(f"{render(token)} does not exist, because its parent is {render(document)}")
    if not rest:
        return change(document, token)
    return _with_child(document, token, _change(_child(document, token), rest, change))


def _with_child(parent: JSON, token: str, value: JSON) -> JSON:
    _child(parent, token)
    if isinstance(parent, dict):
        return {**parent, token: value}
    index = _index(parent, token, len(parent) - 1)
    return [*parent[:index], value, *parent[index + 1 :]]


def _child(parent: JSON, token: str) -> JSON:
    if isinstance(parent, dict) and token in parent:
        return parent[token]
    if isinstance(parent, list):
        return parent[_index(parent, token, len(parent) - 1)]
    raise _unfit_patch_error(f"{render(token)} does not exist")


def _index(parent: list[JSON], token: str, last: int) -> int:
    if not (token.isascii() and token.isdigit()) or (len(token) > 1 and token[0] == "0"):
        raise _unfit_patch_error(f"{render(token)} is not an index of a list")
    if len(token) > len(str(last)) or int(token) > last:
        raise _unfit_patch_error(f"index {token} is out of range for a list of {len(parent)}")
    return int(token)


def _unfit_patch_error(why: str) -> StatusError:
    """Build the error for a well-formed patch that does not match the object."""
    return StatusError(422, "Invalid", f"the server rejected our request due to an error in our request: {why}", {})
