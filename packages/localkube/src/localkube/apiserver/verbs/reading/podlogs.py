"""Implements GET of a pod's `/log`, which returns the output of a container from the kubelet."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.gotypes import scalars
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests.call import Call
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading import podtarget
from localkube.apiserver.verbs.reading.get import get
from localkube.podaccess import LogOptions, NodeError

AT_LEAST = {"tailLines": 0, "sinceSeconds": 1, "limitBytes": 1}


async def logs(backend: Backend, call: Call) -> AsyncIterator[bytes] | None:
    """Return the chunks of the log, or None if the pod has no node. Errors of the node are raised immediately."""
    sent_options = read_options(call)
    pod = get(backend, call)
    options = replace(sent_options, container=podtarget.requested_container(pod, sent_options.container))
    if not meta.spec(pod).get("nodeName"):
        return None
    pieces = backend.node.current.logs(pod, options)
    try:
        first = await anext(pieces, None)
    except NodeError as error:
        raise apierrors.bad_request(str(error)) from error
    return _chunks(first, pieces)


def read_options(call: Call) -> LogOptions:
    """Parse the query of `/log`. `container` is empty if it is not specified."""
    numbers = {name: call.number(name) for name in AT_LEAST}
    errors: list[FieldError] = [
        invalid(name, value, f"must be greater than or equal to {AT_LEAST[name]}")
        for name, value in numbers.items()
        if value is not None and value < AT_LEAST[name]
    ]
    if "sinceTime" in call.query and numbers["sinceSeconds"] is not None:
        errors.append(invalid("sinceSeconds", numbers["sinceSeconds"], "may not be used together with sinceTime"))
    if errors:
        raise apierrors.invalid("", "PodLogOptions", call.name, errors)
    return LogOptions(
        container=call.query.get("container", ""),
        follow=call.flag("follow"),
        previous=call.flag("previous"),
        timestamps=call.flag("timestamps"),
        tail_lines=numbers["tailLines"],
        since_seconds=numbers["sinceSeconds"],
        since_time=_since_time(call),
        limit_bytes=numbers["limitBytes"],
    )


def _since_time(call: Call) -> str | None:
    """Return the time of `sinceTime` in UTC. Raise an error if it is invalid."""
    text = call.query.get("sinceTime")
    try:
        return scalars.read(scalars.Time, text).text if text else None
    except ValueError as error:
        raise apierrors.bad_request(f"sinceTime: {error}") from error


async def _chunks(first: bytes | None, rest: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    if first is None or rest is None:
        return
    async with aclosing(cast("AsyncGenerator[bytes, None]", rest)):
        yield first
        async for piece in rest:
            yield piece
