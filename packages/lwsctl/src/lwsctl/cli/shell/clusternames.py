"""Reads names from a cluster for completion over one connection, without the client of other commands.

Because a shell waits for the result, `quickcompletion` imports this module only if a line requires a cluster.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from kuberuntime.access import kubeconfig
from kuberuntime.access.access import Access
from kuberuntime.access.credentials import Credentials, StoredCredentials
from kuberuntime.access.tls import build_context
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.cluster import clusterdirectories
from lwsctl.cli.errors import CommandError
from lwsctl.cli.shell import completion
from lwsctl.cli.shell.completion import PATIENCE, filter_by_prefix

ACCEPT: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class NeedsClientError(Exception):
    """Raised if the cluster is reachable only with the client of other commands."""


def list_names(what: str, where: Mapping[str, str], start: str) -> list[str] | None:
    """Return the names in a cluster, or an empty list after an error. Return None if the full client is required.

    `what` is a key of `LISTS`, and `where` contains the options that select the cluster.
    """
    try:
        path = where.get("kubeconfig", "")
        if local := where.get("local"):
            path = str(clusterdirectories.cluster_directory(local).kubeconfig)
        access = kubeconfig.load(os.environ, kubeconfig=path, context=where.get("context_name", ""))
        with closing(_Lists(access, where.get("namespace", ""))) as lists:
            return LISTS[what](lists, start)
    except NeedsClientError:
        return None
    except (KubeError, CommandError, OSError, HTTPException, msgspec.MsgspecError, TimeoutError):
        return []


def _names(lists: "_Lists", start: str) -> list[str]:
    name, *rest = start.split("/")
    if not rest:
        groups = (
            ("leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
            ("disaggregatedset.x-k8s.io/v1", "disaggregatedsets"),
        )
        paths = [f"/apis/{group}/namespaces/{quote(lists.namespace)}/{kind}" for group, kind in groups]
        return filter_by_prefix({meta.name(obj) for path in paths for obj in lists.read(path)}, start)
    from leaderworkerset.api.groupname import group_and_rank, parse_group_name
    from lwsctl.views.selection import Selection

    group = parse_group_name(rest[0]) if len(rest) > 1 else None
    selector = Selection(name, group, None if len(rest) > 1 else 0).label_selector()  # the leaders of groups
    pods = lists.read(f"/api/v1/namespaces/{quote(lists.namespace)}/pods?{urlencode({'labelSelector': selector})}")
    return completion.group_or_rank_paths(name, [place for pod in pods if (place := group_and_rank(pod))], start)


class _Lists:
    """Reads the metadata of objects over one connection."""

    def __init__(self, access: Access, namespace: str) -> None:
        if access.proxy or access.tls.server_name:
            raise NeedsClientError
        self.namespace = namespace or access.namespace
        server = urlsplit(access.server)
        credentials = _credentials(access)
        host, port = server.hostname or "", server.port
        self._base = server.path.rstrip("/")
        self._connection: HTTPConnection = (
            HTTPSConnection(host, port, timeout=PATIENCE, context=build_context(access.tls, credentials))
            if server.scheme == "https"
            else HTTPConnection(host, port, timeout=PATIENCE)
        )
        token = {"Authorization": f"Bearer {credentials.token}"} if credentials.token else {}
        self._headers = {"Accept": ACCEPT, **token}

    def read(self, path: str) -> list[JSONObject]:
        """Return the metadata of the objects at a path, or no metadata if the path is not served."""
        self._connection.request("GET", f"{self._base}{path}", headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        items: list[JSONObject] = msgspec.json.decode(body).get("items") or [] if response.status == 200 else []
        return items

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _credentials(access: Access) -> Credentials:
    if isinstance(access.credentials, StoredCredentials):
        return access.credentials.current
    import asyncio  # only exec credential plugins need it

    return asyncio.run(asyncio.wait_for(access.credentials.get(), PATIENCE))


LISTS: Final[Mapping[str, Callable[[_Lists, str], list[str]]]] = {
    "names": _names,
    "namespaces": lambda lists, start: filter_by_prefix(map(meta.name, lists.read("/api/v1/namespaces")), start),
    "nodes": lambda lists, start: filter_by_prefix(map(meta.name, lists.read("/api/v1/nodes")), start),
}
