"""Exits if the Kubernetes version is too old for groups or for the configuration, and warns if it is untested."""

import msgspec
import structlog

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import KubeError, NotFoundError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import kubernetesfeatures
from leaderworkerset.core.admission import podpolicy

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class UnsupportedKubernetesError(KubeError):
    """The API server is too old. The message contains the missing features and the fix."""


async def read(client: Client) -> str:
    """Return the API server version, such as `v1.36.3`."""
    response = await client.send(Request("GET", "/version"))
    try:
        version = msgspec.json.decode(response.body, type=JSONObject)
    except msgspec.DecodeError as error:
        raise KubeError(f"/version: {error}") from error
    return str(version.get("gitVersion") or "with an unknown version")


async def is_served(client: Client, resource: Resource) -> bool:
    """Return whether the API server serves this kind and version."""
    try:
        response = await client.send(Request("GET", f"/apis/{resource.api_version}"))
        discovery = msgspec.json.decode(response.body, type=JSONObject)
    except NotFoundError:
        return False
    except msgspec.DecodeError as error:
        raise KubeError(f"discovery of {resource.api_version}: {error}") from error
    return any(api_resource.get("name") == resource.plural for api_resource in discovery.get("resources") or [])


async def require_pod_policies(client: Client) -> None:
    """Raise an error if the API server does not serve the policies required by the configuration."""
    missing = [kind for kind in podpolicy.KINDS if not await is_served(client, kind)]
    if missing:
        raise UnsupportedKubernetesError(
            f'podAdmission: Invalid value: "Policy": Kubernetes {await read(client)} does not serve {missing[0].kind} '
            f"of {missing[0].api_version}. Use 1.{kubernetesfeatures.POD_POLICIES.since.minor} or later, or set Auto "
            "or Webhook"
        )


async def check(client: Client) -> None:
    """Raise an error if the API server is too old. Log a warning if it is untested."""
    try:
        version = await read(client)
    except KubeError as error:
        log.debug("failed to read the Kubernetes version", error=str(error))
        return
    if reason := kubernetesfeatures.unsupported_reason(version):
        raise UnsupportedKubernetesError(reason)
    if text := kubernetesfeatures.untested_note(version):
        log.warning("untested Kubernetes version", text=text, missing=kubernetesfeatures.describe_degradation(version))
