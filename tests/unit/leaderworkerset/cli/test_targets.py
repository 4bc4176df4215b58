"""What is said where nothing is found."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.unit.kuberuntime.fakes import ScriptedTransport, answer, failure

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from leaderworkerset.cli import targets
from leaderworkerset.cli.cluster.target import Session


def said(*script: Response, namespace: str = "default") -> str:
    transport = ScriptedTransport(*script)
    session = Session(Client(transport), "default", None)  # type: ignore[arg-type]  # no channels are opened
    return asyncio.run(targets.nothing_found(session, namespace))


def there(namespaces: Sequence[str]) -> Response:
    return answer(
        200, {"metadata": {}, "items": [{"metadata": {"name": "web", "namespace": one}} for one in namespaces]}
    )


@pytest.mark.parametrize(
    ("response", "more"),
    [
        (there([]), ""),
        (there(["prod", "prod"]), " There are some in prod: choose with -n, or show all with -A."),
        (there("fedcba"), " There are some in a, b, c, d and 2 more: choose with -n, or show all with -A."),
        (failure(403, "Forbidden", "no"), ""),
    ],
    ids=["nowhere", "in one", "in many", "forbidden"],
)
def test_an_empty_namespace_says_where_there_is_something(response: Response, more: str) -> None:
    assert said(response) == f"No LeaderWorkerSets found in namespace default.{more}"


def test_of_all_namespaces_nothing_more_is_asked() -> None:
    assert said(namespace="") == "No LeaderWorkerSets found."
