"""Finds the resource that serves a kind, by reading each group version once from the API server."""

import re
from collections.abc import Collection
from typing import Final

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import KubeError, NotFoundError, from_response
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from lwsctl.cli.applying import skippedgroups
from lwsctl.cli.errors import CommandError
from lwsctl.cli.suggestions import hint

API_VERSION: Final = re.compile(r"([a-zA-Z0-9][-.a-zA-Z0-9]*/)?[a-zA-Z0-9]+")

OWN_GROUPS: Final = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration", "certificates", "coordination", "discovery", "events", "flowcontrol.apiserver",
        "networking", "node", "rbac.authorization", "resource", "scheduling", "storage",
    )
)  # fmt: skip
"""Built-in Kubernetes API groups whose names contain a dot. CRDs cannot add kinds to these groups."""


class UnknownKindError(CommandError):
    """Raised if the API server does not serve a kind."""


class Discovery:
    """Finds resources by kind."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: dict[str, dict[str, Resource]] = {}

    async def resource_of(self, obj: JSONObject) -> Resource:
        """Return the resource of an object.

        Raise `UnknownKindError`, which lists the served alternatives, if its kind is not served.
        """
        api_version, kind = obj["apiVersion"], obj["kind"]
        if api_version not in self._served:
            self._served[api_version] = await self._fetch(api_version)
        resource = self._served[api_version].get(kind)
        if resource is None:
            served = self._served.pop(api_version)  # a CRD that is applied later may serve it
            raise UnknownKindError(await self._advice(api_version, kind, served))
        return resource

    async def _advice(self, api_version: str, kind: str, served: Collection[str]) -> str:
        """Return the message for an unserved kind, which suggests a similar kind or the served version."""
        text = f"the API server does not serve kind {kind} in {api_version}"
        if near := hint(kind, served):
            return f"{text}{near}"
        others = [other for other in await self._versions() if other != api_version]
        places = [f'"{other}"' for other in others if kind in await self._fetch(other)]
        if places:
            return f"{text}, but serves it in {' and '.join(places)}"
        group = api_version.rpartition("/")[0]
        skips = ", or use --skip-unserved to skip it" if skippedgroups.reason(api_version) else ""
        if "." not in group or group in OWN_GROUPS:
            return f"{text}; remove the object from the manifest{skips}"
        return f"{text}; install its CRD{skips}"

    async def _versions(self) -> list[str]:
        """Return the API groups in their preferred versions. Groups that cannot be read are omitted."""
        try:
            response = await self._client.send(Request("GET", "/apis"))
            groups = msgspec.json.decode(response.body)["groups"]
            return ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
        except (KubeError, msgspec.DecodeError, KeyError, TypeError):
            return ["v1"]

    async def _fetch(self, api_version: str) -> dict[str, Resource]:
        if not API_VERSION.fullmatch(api_version):
            raise UnknownKindError(
                f"apiVersion: Invalid value: {api_version!r}: must be VERSION or GROUP/VERSION, such as apps/v1"
            )
        group, _, version = api_version.rpartition("/")
        try:
            response = await self._client.send(Request("GET", f"/apis/{api_version}" if group else f"/api/{version}"))
        except NotFoundError:
            return {}
        try:
            return {
                entry["kind"]: Resource(group, version, entry["name"], entry["kind"], namespaced=entry["namespaced"])
                for entry in msgspec.json.decode(response.body)["resources"]
                if "/" not in entry["name"]
            }
        except (msgspec.DecodeError, KeyError, TypeError) as error:  # the response is not from an API server
            raise from_response(response.status, response.body) from error
