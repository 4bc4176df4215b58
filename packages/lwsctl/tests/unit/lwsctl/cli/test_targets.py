"""Tests the messages for an empty list and for an unknown name."""

import asyncio
from collections.abc import Sequence

import pytest
from testkit.fakes import ScriptedTransport, failure, respond

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from leaderworkerset.api import labels
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError

POD_LABELS = {labels.NAME: "api", labels.GROUP_INDEX: "0", labels.WORKER_INDEX: "1"}


def said(*script: Response, namespace: str = "default") -> str:
    transport = ScriptedTransport(*script)
    session = Session(Client(transport), "default", None)  # type: ignore[arg-type]  # no channels are opened
    return asyncio.run(targets.nothing_found(session, namespace))


def there(namespaces: Sequence[str]) -> Response:
    return respond(
        200, {"metadata": {}, "items": [{"metadata": {"name": "web", "namespace": one}} for one in namespaces]}
    )


@pytest.mark.parametrize(
    ("response", "more"),
    [
        (there([]), ""),
        (
            there(["prod", "prod"]),
            " LeaderWorkerSets exist in prod; use -n to select a namespace, or -A for all namespaces.",
        ),
        (
            there("fedcba"),
            " LeaderWorkerSets exist in a, b, c, d and 2 more; use -n to select a namespace, or -A for all namespaces.",
        ),
        (failure(403, "Forbidden", "no"), ""),
    ],
    ids=["nowhere", "in one", "in many", "forbidden"],
)
def test_empty_namespace_message_names_other_namespaces(response: Response, more: str) -> None:
    assert said(response) == f"No LeaderWorkerSets found in namespace default.{more}"


def test_empty_result_of_all_namespaces_asks_nothing_more() -> None:
    assert said(namespace="") == "No LeaderWorkerSets found."


def not_found(name: str, *script: Response) -> str:
    missing = failure(404, "NotFound", f'leaderworkersets.leaderworkerset.x-k8s.io "{name}" not found')
    transport = ScriptedTransport(missing, failure(404, "NotFound", "no such kind"), *script)
    session = Session(Client(transport), "default", None)  # type: ignore[arg-type]  # no channels are opened
    with pytest.raises(CommandError) as raised:
        asyncio.run(targets.find_set(session, name))
    return str(raised.value)


def named(*names: str) -> Response:
    return respond(200, {"metadata": {}, "items": [{"metadata": {"name": one}} for one in names]})


@pytest.mark.parametrize(
    ("name", "names", "elsewhere", "more"),
    [
        ("web", [], [], "(existing: none)"),
        ("wbe", ["api", "web"], [], '(existing: api, web), did you mean "web"?'),
        ("web", ["api"], ["prod"], "(existing: api); it exists in prod; use -n to select it"),
        (
            "zz",
            [f"s{at:03}" for at in range(300)],
            [],
            f"(existing: {', '.join(f's{at:03}' for at in range(10))} and 290 more)",
        ),
    ],
    ids=["nothing there", "misspelled", "in another namespace", "of many"],
)
def test_unknown_name_message_lists_existing_names(
    name: str, names: list[str], elsewhere: list[str], more: str
) -> None:
    assert not_found(name, named(*names), there(elsewhere)) == (
        f"leaderworkerset {name!r} not found in namespace default {more}"
    )


def test_not_found_message_works_without_cluster_permissions() -> None:
    said = not_found("web", named("api"), failure(403, "Forbidden", "no"))
    assert said.endswith("(existing: api)")


@pytest.mark.parametrize(
    ("pod", "more"),
    [
        (respond(200, {"metadata": {"name": "api-0-1", "labels": POD_LABELS}}), "; use api/0/1 for pod api-0-1"),
        (respond(200, {"metadata": {"name": "api-0-1"}}), ""),
        (failure(404, "NotFound", "no"), ""),
    ],
    ids=["of a set", "of others", "gone"],
)
def test_pod_name_gets_the_path_of_its_rank(pod: Response, more: str) -> None:
    assert not_found("api-0-1", named("api"), there([]), pod).endswith(f"(existing: api){more}")


def test_name_of_a_different_kind_gets_the_command_that_lists_it() -> None:
    assert not_found("nodes", named("api"), there([])).endswith("(existing: api); use `lws nodes` to list nodes")
