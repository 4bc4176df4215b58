"""Tests apply conflicts with other commands of the same user."""

from typing import Any

import pytest
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import run

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from kuberuntime.errors import ConflictError
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.cli.applying import serverside
from lwsctl.cli.applying.serverside import ApplyResult

IMAGE = '.spec.leaderWorkerTemplate.workerTemplate.spec.containers[name="main"].image'
BEFORE = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 2}}
AFTER = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 1}}


def conflict(*causes: tuple[str, str]) -> Response:
    """Return the response to an apply that conflicts with these managers in these fields."""
    found = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}" using v1', "field": field}
        for manager, field in causes
    ]
    return failure(409, "Conflict", "conflicts", causes=found)


def apply(*answers: Any) -> ApplyResult:
    client = Client(ScriptedTransport(respond(200, BEFORE), *answers))
    return run(serverside.apply(client, LEADERWORKERSETS, AFTER, manager="lws-cli", force=False))


def test_fields_of_own_commands_are_taken_over_and_reported() -> None:
    applied = apply(conflict(("lws-scale", ".spec.replicas"), ("lws-rollout", IMAGE)), respond(200, AFTER))
    assert applied.taken_fields == {".spec.replicas": "2 -> 1", IMAGE: ""}
    assert applied.previous_owners == ("lws rollout", "lws scale")


@pytest.mark.parametrize("manager", ["lws-pause", "hpa", "lws-rollouts"])
def test_fields_of_others_and_of_a_pause_are_not_taken_over(manager: str) -> None:
    with pytest.raises(ConflictError):
        apply(conflict(("lws-scale", ".spec.replicas"), (manager, IMAGE)))
