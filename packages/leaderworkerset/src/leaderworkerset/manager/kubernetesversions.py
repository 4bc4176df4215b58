"""Stops a manager on a Kubernetes that is too old for groups, and logs a warning on an untested version."""

import msgspec
import structlog

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import KubeError
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import kubernetesfeatures

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class UnsupportedKubernetesError(KubeError):
    """The API server is too old; the text names the missing features and what to do."""


async def read(client: Client) -> str:
    """Return the version of the API server, as `v1.36.3`."""
    answer = await client.send(Request("GET", "/version"))
    try:
        version = msgspec.json.decode(answer.body, type=JSONObject)
    except msgspec.DecodeError as error:
        raise KubeError(f"/version: {error}") from error
    return str(version.get("gitVersion") or "of unknown version")


async def check(client: Client) -> None:
    """Raise an error if the API server is too old; log a warning if it is untested."""
    try:
        version = await read(client)
    except KubeError as error:
        log.debug("version of Kubernetes not read", error=str(error))
        return
    if reason := kubernetesfeatures.too_old(version):
        raise UnsupportedKubernetesError(reason)
    if text := kubernetesfeatures.untested(version):
        log.warning("Kubernetes not tested", text=text, missing=kubernetesfeatures.degraded(version))
