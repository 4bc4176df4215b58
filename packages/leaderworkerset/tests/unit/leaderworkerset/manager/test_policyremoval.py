"""Tests that a manager removes the pod policy if its configuration does not permit it."""

import pytest
from testkit.fakes import ScriptedTransport, failure, respond

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from leaderworkerset.core.admission import podpolicy
from leaderworkerset.manager.policyremoval import PolicyRemoval

pytestmark = pytest.mark.virtual_time

(_, POLICY), (_, BINDING) = podpolicy.build()


async def requests(*script: Response) -> list[tuple[str, str]]:
    """Return the requests of a removal. Each consists of a verb and a kind."""
    transport = ScriptedTransport(*script)
    await PolicyRemoval(Client(transport)).run()
    return [(request.method, request.path.rsplit("/", 2)[1]) for request in transport.requests]


async def test_binding_is_deleted_before_its_policy() -> None:
    deleted = respond(200, {"kind": "Status"})
    assert await requests(respond(200, BINDING), deleted, respond(200, POLICY), deleted) == [
        ("GET", "mutatingadmissionpolicybindings"),
        ("DELETE", "mutatingadmissionpolicybindings"),
        ("GET", "mutatingadmissionpolicies"),
        ("DELETE", "mutatingadmissionpolicies"),
    ]


async def test_foreign_objects_of_the_name_are_kept() -> None:
    foreign = respond(200, {"metadata": {"name": podpolicy.NAME}})
    assert [verb for verb, _ in await requests(foreign, foreign)] == ["GET", "GET"]


async def test_removal_is_tried_again_after_an_error() -> None:
    absent = failure(404, "NotFound")
    assert [verb for verb, _ in await requests(failure(500, "InternalError"), absent, absent)] == ["GET"] * 3


async def test_removal_ends_where_the_role_is_older() -> None:
    assert [verb for verb, _ in await requests(failure(403, "Forbidden"))] == ["GET"]
