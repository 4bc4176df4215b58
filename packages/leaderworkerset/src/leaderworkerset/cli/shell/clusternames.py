"""Reads names from a cluster for completion, over one connection and without the client of commands.

A shell waits for the answer: `quickcompletion` imports this module only if a line needs a cluster.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from kuberuntime.access import kubeconfig
from kuberuntime.access.access import Access
from kuberuntime.access.tls import build_context
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.cli.cluster import places
from leaderworkerset.cli.errors import CommandError
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.shell.completing import PATIENCE, matching

ACCEPT: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class NeedsClientError(Exception):
    """The cluster can be reached only with the client of commands."""


def ask(what: str, where: Mapping[str, str], start: str) -> list[str] | None:
    """Return the names from a cluster; None if only the client of commands can read them, empty after an error.

    `what` is a key of `LISTS`, and `where` has the options that select the cluster.
    """
    try:
        path = where.get("kubeconfig", "")
        if local := where.get("local"):
            path = str(places.place(local).kubeconfig)
        access = kubeconfig.load(os.environ, kubeconfig=path, context=where.get("context_name", ""))
        return LISTS[what](access, where.get("namespace") or access.namespace, start)
    except NeedsClientError:
        return None
    except (KubeError, CommandError, OSError, HTTPException, msgspec.MsgspecError, TimeoutError):
        return []


def _namespaces(access: Access, _namespace: str, start: str) -> list[str]:
    return matching(map(meta.name, _list(access, "/api/v1/namespaces")), start)


def _nodes(access: Access, _namespace: str, start: str) -> list[str]:
    return matching(map(meta.name, _list(access, "/api/v1/nodes")), start)


def _named(access: Access, namespace: str, start: str) -> list[str]:
    name, *rest = start.split("/")
    if not rest:
        groups = (
            ("leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
            ("disaggregatedset.x-k8s.io/v1", "disaggregatedsets"),
        )
        paths = [f"/apis/{group}/namespaces/{quote(namespace)}/{kind}" for group, kind in groups]
        return matching({meta.name(one) for path in paths for one in _list(access, path)}, start)
    from leaderworkerset.views.groups import name_of, place_of
    from leaderworkerset.views.selection import Selection

    group = name_of(rest[0]) if len(rest) > 1 else None
    selector = Selection(name, group, None if len(rest) > 1 else 0).label_selector()  # of groups the leaders
    pods = _list(access, f"/api/v1/namespaces/{quote(namespace)}/pods?{urlencode({'labelSelector': selector})}")
    return completing.places(name, [place for pod in pods if (place := place_of(pod))], start)


def _list(access: Access, path: str) -> list[JSONObject]:
    """Return the metadata of the objects at a path; none if the server does not serve it."""
    if access.proxy or access.tls.server_name:
        raise NeedsClientError
    server = urlsplit(access.server)
    credentials = asyncio.run(asyncio.wait_for(access.credentials.get(), PATIENCE))
    host, port = server.hostname or "", server.port
    if server.scheme == "https":
        tls = build_context(access.tls, credentials)
        connection: HTTPConnection = HTTPSConnection(host, port, timeout=PATIENCE, context=tls)
    else:
        connection = HTTPConnection(host, port, timeout=PATIENCE)
    token = {"Authorization": f"Bearer {credentials.token}"} if credentials.token else {}
    try:
        connection.request("GET", f"{server.path.rstrip('/')}{path}", headers={"Accept": ACCEPT, **token})
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    items: list[JSONObject] = msgspec.json.decode(body).get("items") or [] if response.status == 200 else []
    return items


LISTS: Final[Mapping[str, Callable[[Access, str, str], list[str]]]] = {
    "names": _named,
    "namespaces": _namespaces,
    "nodes": _nodes,
}
