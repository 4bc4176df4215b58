"""Tests that the client decodes responses, reads all pages, waits when requested, and raises typed errors."""

import asyncio

import pytest
from testkit.fakes import ScriptedTransport, failure, respond
from testkit.virtualtime import run

from kuberuntime.client.client import RETRIES, Client, Listing
from kuberuntime.client.transport import Request, Response
from kuberuntime.errors import APIError, ExpiredError, NotFoundError, ServiceUnavailableError, TooManyRequestsError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey, ResourceVersion
from kuberuntime.objects.resources import PODS

KEY = ObjectKey("default", "web")
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}


def busy(seconds: str, status: int = 429) -> Response:
    return respond(status, {"kind": "Status", "code": status, "message": "slow down"}, {"retry-after": seconds})


def test_get_returns_the_object() -> None:
    client = Client(ScriptedTransport(respond(200, POD)))

    assert run(client.get(PODS, KEY)) == POD


def test_error_type_follows_the_reason() -> None:
    client = Client(ScriptedTransport(failure(404, "NotFound", 'pods "web" not found')))

    with pytest.raises(NotFoundError, match='pods "web" not found'):
        run(client.get(PODS, KEY))


def test_malformed_answer_is_an_error() -> None:
    client = Client(ScriptedTransport(respond(200, b"<html>login</html>")))

    with pytest.raises(APIError, match="the server responded with 200: <html>login</html>"):
        run(client.get(PODS, KEY))


def test_answer_that_is_nested_too_deeply_is_an_error() -> None:
    """API servers store objects with 10,000 levels. The depth that can be read depends on the Python version."""
    deep = respond(200, b'{"items":' * 100_000 + b"1" + b"}" * 100_000)

    with pytest.raises(APIError, match="the server responded with 200: "):
        run(Client(ScriptedTransport(deep)).get(PODS, KEY))
    with pytest.raises(APIError, match="the server responded with 200: "):
        run(Client(ScriptedTransport(deep)).list(PODS))


def test_list_follows_continue_and_restores_kinds() -> None:
    transport = ScriptedTransport(
        respond(200, {"metadata": {"resourceVersion": "7", "continue": "t"}, "items": [{"metadata": {"name": "a"}}]}),
        respond(200, {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "b"}}]}),
    )

    listing = run(Client(transport).list(PODS, namespace="default", limit=1))

    head = {"apiVersion": "v1", "kind": "Pod"}
    assert listing == Listing(
        [head | {"metadata": {"name": "a"}}, head | {"metadata": {"name": "b"}}], ResourceVersion("7")
    )
    assert [dict(request.query) for request in transport.requests] == [{"limit": "1"}, {"limit": "1", "continue": "t"}]


def test_next_page_is_requested_before_decoding_the_current() -> None:
    transport = ScriptedTransport(
        respond(200, {"metadata": {"continue": "t"}, "items": 5}),  # the response cannot be decoded into a page
        respond(200, {"metadata": {}, "items": []}),
    )

    with pytest.raises(TypeError):
        run(Client(transport).list(PODS))
    assert len(transport.requests) == 2


def test_expired_continue_token_leads_to_one_complete_list() -> None:
    first, second = {"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}
    transport = ScriptedTransport(
        respond(200, {"metadata": {"continue": "t", "resourceVersion": "7"}, "items": [first]}),
        failure(410, "Expired", "too old"),
        respond(200, {"metadata": {"resourceVersion": "9"}, "items": [first, second]}),
    )

    listing = run(Client(transport).list(PODS, label_selector="app=web", limit=1))

    assert ([meta.name(pod) for pod in listing.items], listing.resource_version) == (["a", "b"], "9")
    assert transport.requests[2].query == (("labelSelector", "app=web"),)


def test_rejected_complete_list_is_an_error() -> None:
    transport = ScriptedTransport(
        respond(200, {"metadata": {"continue": "t"}, "items": []}),
        failure(410, "Expired", "too old"),
        failure(410, "Expired", "too old again"),
    )

    with pytest.raises(ExpiredError, match="too old again"):
        run(Client(transport).list(PODS))


@pytest.mark.virtual_time
@pytest.mark.parametrize("items", [5, []], ids=["a page that cannot be decoded", "a list that is abandoned"])
async def test_page_request_ends_with_its_list(items: object) -> None:
    class Slow(ScriptedTransport):
        async def request(self, request: Request) -> Response:
            if dict(request.query).get("continue"):
                await asyncio.sleep(100)
            return await super().request(request)

    before = asyncio.all_tasks()
    with pytest.raises((TypeError, TimeoutError)):
        async with asyncio.timeout(1):
            await Client(Slow(respond(200, {"metadata": {"continue": "t"}, "items": items}))).list(PODS)
    assert (asyncio.all_tasks() - before) == set()


def test_malformed_page_is_an_error() -> None:
    with pytest.raises(APIError, match="the server responded with 200: <html>login</html>"):
        run(Client(ScriptedTransport(respond(200, b"<html>login</html>"))).list(PODS))


def test_empty_list_may_omit_its_items() -> None:
    client = Client(ScriptedTransport(respond(200, {"metadata": {"resourceVersion": "7"}, "items": None})))

    assert run(client.list(PODS)) == Listing([], ResourceVersion("7"))


@pytest.mark.virtual_time
async def test_busy_server_is_retried_after_its_retry_time() -> None:
    transport = ScriptedTransport(busy("2"), busy("3", 503), respond(200, POD))

    await Client(transport).get(PODS, KEY)
    assert asyncio.get_running_loop().time() == pytest.approx(5)
    assert len(transport.requests) == 3


@pytest.mark.virtual_time
async def test_retries_of_a_busy_server_are_bounded() -> None:
    transport = ScriptedTransport(*[busy("3600")] * (RETRIES + 1))

    with pytest.raises(TooManyRequestsError):
        await Client(transport).get(PODS, KEY)
    assert asyncio.get_running_loop().time() == pytest.approx(RETRIES * 10)


def test_server_without_a_retry_time_is_not_retried() -> None:
    transport = ScriptedTransport(failure(503, "ServiceUnavailable"))

    with pytest.raises(ServiceUnavailableError):
        run(Client(transport).get(PODS, KEY))
    assert len(transport.requests) == 1


@pytest.mark.virtual_time
async def test_writes_carry_dry_run_and_field_validation() -> None:
    transport = ScriptedTransport(*[respond(200, POD)] * 4)
    client = Client(transport, field_validation="Strict")

    await client.create(PODS, POD, dry_run=True)
    await client.update(PODS, POD)
    await client.apply(PODS, POD, manager="lws", dry_run=True)
    await client.patch(PODS, KEY, {}, kind="merge")

    assert [request.query for request in transport.requests] == [
        (("fieldValidation", "Strict"), ("dryRun", "All")),
        (("fieldValidation", "Strict"),),
        (("fieldManager", "lws"), ("force", "true"), ("fieldValidation", "Strict"), ("dryRun", "All")),
        (("fieldValidation", "Strict"),),
    ]


def test_delete_returns_the_answer_of_the_server() -> None:
    client = Client(ScriptedTransport(respond(200, {"kind": "Status", "status": "Success"})))

    assert run(client.delete(PODS, KEY, uid="u")) == {"kind": "Status", "status": "Success"}


def test_rejected_stream_raises_the_error_in_its_body() -> None:
    client = Client(ScriptedTransport(failure(404, "NotFound", "no such pod")))

    async def scenario() -> None:
        async with client.stream("GET", "/api/v1/namespaces/default/pods/web/log", (("follow", "true"),)):
            pass

    with pytest.raises(NotFoundError, match="no such pod"):
        run(scenario())


def test_stream_yields_its_chunks() -> None:
    client = Client(ScriptedTransport(respond(200, b"line\n")))

    async def scenario() -> list[bytes]:
        async with client.stream("GET", "/log") as response:
            return [chunk async for chunk in response.chunks]

    assert run(scenario()) == [b"line\n"]


def test_close_closes_the_transport() -> None:
    transport = ScriptedTransport()

    run(Client(transport).close())

    assert transport.closed
