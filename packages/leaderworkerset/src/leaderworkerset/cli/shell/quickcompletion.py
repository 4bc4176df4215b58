"""Completion of names without the modules of commands: clusters, contexts, namespaces, nodes, LeaderWorkerSets, ranks.

In: the complete words of a line and the incomplete one. Out: suggestions, or None where click knows the answer: options,
commands, values of a choice. A shell waits for each answer, so no module of a command and no aiohttp is imported here;
where a cluster needs them (a proxy, a server name of its own), `completing` asks it.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

import click
import msgspec
from click import shell_completion
from click.shell_completion import CompletionItem, ShellComplete

from kuberuntime.access import kubeconfig
from kuberuntime.access.access import Access
from kuberuntime.access.tls import build_context
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.conditions import WAIT_WORDS
from leaderworkerset.cli.cluster import places
from leaderworkerset.cli.errors import CommandError
from leaderworkerset.cli.faultnames import FAULTS, Of
from leaderworkerset.cli.shell import completing
from leaderworkerset.cli.shell.completing import MOST, PATIENCE

NAMED: Final = frozenset({
    "delete", "describe", "events", "exec", "explain", "get", "history", "logs", "move", "port-forward", "recover",
    "restart", "scale", "tree", "wait", "cp",
    *(f"rollout {verb}" for verb in ("status", "history", "diff", "undo", "pause", "resume", "restart")),
    *(f"chaos {fault.name}" for fault in FAULTS.values() if fault.of in {Of.RANK, Of.RANKS}),
})  # fmt: skip
"""The commands whose arguments are LeaderWorkerSets, groups or ranks."""

OF_NODES: Final = frozenset({"nodes", "drain", *(f"chaos {one.name}" for one in FAULTS.values() if one.of is Of.NODE)})
OF_CLUSTERS: Final = frozenset({"up", "down"})
VERBS: Final = frozenset({"rollout", "chaos"})

CONDITIONS: Final = (*WAIT_WORDS, "delete", "replicas=", "condition=", "jsonpath=")
ACCEPT: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class NeedsClientError(Exception):
    """The cluster can be reached only by the client of commands."""


def register() -> None:
    """Let all shells ask this module before click."""
    for shell in (shell_completion.BashComplete, shell_completion.ZshComplete, shell_completion.FishComplete):
        shell_completion.add_completion_class(type(shell.__name__, (_Quick, shell), {}))


class _Quick(ShellComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return suggestions."""
        found = suggestions(args, incomplete, self.cli)
        if found is None:
            return super().get_completions(args, incomplete)
        return [CompletionItem(one) for one in found]


def suggestions(args: Sequence[str], incomplete: str, root: click.Command) -> list[str] | None:
    """Return the suggestions for a word after others; None where click knows them."""
    option, start = _option(args, incomplete)
    find: Callable[[Access, str, str], list[str]] | None = None
    if option == completing.LOCAL or (not option and _command(args, root) in OF_CLUSTERS):
        return _matching([place.name for place in places.all_places()], start)
    if option == "--for" and _command(args, root) == "wait":
        return _matching(CONDITIONS, start)
    if option in {"-n", "--namespace"}:
        find = _namespaces
    elif not option and not start.startswith("-") and "--" not in args:
        command = _command(args, root)
        find = _named if command in NAMED else _nodes if command in OF_NODES else None
    return None if find is None else _asked(find, args, start, root)


def _option(args: Sequence[str], incomplete: str) -> tuple[str, str]:
    """Return the option whose value is completed, empty for none, and the beginning of the value.

    >>> _option(["get", "-n"], "pr"), _option(["get"], "--local=g"), _option(["get", "--local"], "="), _option(["get"], "we")
    (('-n', 'pr'), ('--local', 'g'), ('--local', ''), ('', 'we'))
    """
    if incomplete == "=":
        return (args[-1] if args else ""), ""
    if incomplete.startswith("--") and "=" in incomplete:
        name, _, value = incomplete.partition("=")
        return name, value
    if len(args) > 1 and args[-1] == "=":
        return args[-2], incomplete
    last = args[-1] if args else ""
    is_open = last.startswith("-") and "=" not in last and last != completing.LOCAL
    return (last if is_open else ""), incomplete


def _command(args: Sequence[str], root: click.Command) -> str:
    """Return the command of the words, with its verb; empty if there is none yet."""
    words = [word for word in _without_options(args, root) if not word.startswith("-")]
    return " ".join(words[: 2 if words[:1] and words[0] in VERBS else 1])


def _without_options(args: Sequence[str], root: click.Command) -> list[str]:
    """Return the words without the options that select a cluster, and their values."""
    options = {word for one in root.params if one.expose_value for word in one.opts} - {completing.LOCAL}
    left, found = iter(args), []
    for word in left:
        if word in options:
            next(left, None)
        elif word != "=" and not word.startswith("-"):
            found.append(word)
    return found


def _asked(
    find: Callable[[Access, str, str], list[str]], args: Sequence[str], start: str, root: click.Command
) -> list[str] | None:
    """Ask the cluster that the line addresses; an error offers nothing."""
    where = completing.where(args, root)
    try:
        path = where.get("kubeconfig", "")
        if local := where.get("local"):
            path = str(places.place(local).kubeconfig)
        access = kubeconfig.load(os.environ, kubeconfig=path, context=where.get("context_name", ""))
        return find(access, where.get("namespace") or access.namespace, start)
    except NeedsClientError:
        return None
    except (KubeError, CommandError, OSError, HTTPException, msgspec.MsgspecError, TimeoutError):
        return []


def _namespaces(access: Access, _namespace: str, start: str) -> list[str]:
    return _matching(map(meta.name, _list(access, "/api/v1/namespaces")), start)


def _nodes(access: Access, _namespace: str, start: str) -> list[str]:
    return _matching(map(meta.name, _list(access, "/api/v1/nodes")), start)


def _named(access: Access, namespace: str, start: str) -> list[str]:
    name, *rest = start.split("/")
    if not rest:
        groups = (
            ("leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
            ("disaggregatedset.x-k8s.io/v1", "disaggregatedsets"),
        )
        paths = [f"/apis/{group}/namespaces/{quote(namespace)}/{kind}" for group, kind in groups]
        return _matching({meta.name(one) for path in paths for one in _list(access, path)}, start)
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


def _matching(names: "Sequence[str] | set[str] | map[str]", start: str) -> list[str]:
    return [one for one in sorted(names) if one.startswith(start)][:MOST]
