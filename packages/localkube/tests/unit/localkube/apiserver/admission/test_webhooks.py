"""Tests admission webhooks over HTTPS, as kube-apiserver calls them."""

import base64
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trustme
from aiohttp import web
from msgspec.structs import replace

from localkube.apiserver.admission import match_conditions
from localkube.apiserver.admission.webhook_https import tls_context
from localkube.apiserver.admission.webhook_rules import Attempt
from localkube.apiserver.admission.webhooks import Admission
from localkube.apiserver.builtin.extensions import MUTATING, VALIDATING
from localkube.apiserver.builtin.pods import POD
from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.model.kind import Kind

Answer = dict[str, Any]
Handler = Callable[[dict[str, Any]], Answer]

PODS = POD.kind()
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
NAMESPACES: dict[str, Mapping[str, str]] = {"default": {"env": "test"}}


@pytest.fixture(name="authority", scope="module")
def _authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


class Hooks:
    """Webhooks on a local port. A function responds for each path, and the requests are recorded."""

    def __init__(self, authority: trustme.CA) -> None:
        self.authority = authority
        self.handlers: dict[str, Handler] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.port = 0
        self.raw: bytes | None = None
        self.hang_up = False

    async def serve(self, request: web.Request) -> web.Response:
        if self.raw is not None:
            return web.Response(body=self.raw)
        if self.hang_up and request.transport is not None:
            self.hang_up = False
            request.transport.close()
        review = msgspec.json.decode(await request.read())["request"]
        if request.transport is None or request.transport.is_closing():
            return web.Response()
        self.asked.append((request.path, review))
        answer = self.handlers[request.path](review)
        if "code" in answer:
            return web.Response(status=answer["code"], text="broken")
        body = {"kind": "AdmissionReview", "response": {"uid": review["uid"], "allowed": True} | answer}
        return web.Response(body=msgspec.json.encode(body))

    def webhook(self, path: str, **fields: Any) -> dict[str, Any]:
        bundle = base64.b64encode(self.authority.cert_pem.bytes()).decode()
        client = {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": bundle}
        name = f"{path.strip('/')}.lws.test"
        declared = {"name": name, "clientConfig": client, "rules": [RULE], "sideEffects": "None"}
        return declared | {"admissionReviewVersions": ["v1"]} | fields


def configuration(kind: Kind, *webhooks: dict[str, Any]) -> dict[str, Any]:
    resource = kind.resource
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "hooks"}}
    prepared = kind.prepare("create", obj | {"webhooks": list(webhooks)}, None)
    assert kind.validate("create", prepared, None) == []
    return prepared


@asynccontextmanager
async def serving(authority: trustme.CA) -> AsyncIterator[tuple[Hooks, Admission]]:
    hooks = Hooks(authority)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    app = web.Application()
    app.router.add_post("/{name}", hooks.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    hooks.port = runner.addresses[0][1]
    numbers = iter(range(1000))
    admission = Admission(
        namespace_labels=lambda name: NAMESPACES[name],
        uid=lambda: f"review-{next(numbers)}",
    )
    try:
        yield hooks, admission
    finally:
        await admission.close()
        await runner.cleanup()


def attempt(**fields: Any) -> Attempt:
    pod = PODS.prepare(
        "create",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "labels": {"a": "b"}},
         "spec": {"containers": [{"name": "c", "image": "x:1"}]}},
        None,
    )  # fmt: skip
    plain = Attempt(
        kind=PODS, operation="CREATE", namespace="default", name="p", object=pod, old=None, user="me",
        options={"kind": "CreateOptions"},
    )  # fmt: skip
    return replace(plain, **fields)


def patch(*operations: dict[str, Any]) -> Answer:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(operations)).decode()}


def label(name: str, value: str) -> Answer:
    return patch({"op": "add", "path": f"/metadata/labels/{name}", "value": value})


def test_certificates_without_key_identifiers_are_accepted(authority: trustme.CA) -> None:
    """Since Python 3.13, default contexts reject certificates without these extensions.

    `openssl x509 -req` creates such certificates.
    """
    for bundle in ("", base64.b64encode(authority.cert_pem.bytes()).decode()):
        context = tls_context(bundle)
        assert not context.verify_flags & ssl.VERIFY_X509_STRICT
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


async def test_mutating_webhooks_patch_in_sequence(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/first"] = lambda _: label("one", "1") | {"warnings": ["look out"]}
        hooks.handlers["/second"] = lambda review: label("two", review["object"]["metadata"]["labels"]["one"] + "2")
        admission.use_mutating([configuration(MUTATING.kind(), hooks.webhook("/first"), hooks.webhook("/second"))])
        asked = attempt()
        found = await admission.mutate(asked)
        assert found is not None
        assert found["metadata"]["labels"] == {"a": "b", "one": "1", "two": "12"}
        assert asked.object is not None
        assert asked.object["metadata"]["labels"] == {"a": "b"}
        assert asked.warnings == ["look out"]


async def test_review_describes_the_request(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/check"] = lambda _: {}
        admission.use_validating([configuration(VALIDATING.kind(), hooks.webhook("/check"))])
        asked = attempt(dry_run=True)
        await admission.validate(asked)
        ((_, review),) = hooks.asked
        pods = {"group": "", "version": "v1"}
        assert review == {
            "uid": "review-0",
            "kind": pods | {"kind": "Pod"},
            "resource": pods | {"resource": "pods"},
            "requestKind": pods | {"kind": "Pod"},
            "requestResource": pods | {"resource": "pods"},
            "name": "p",
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "me", "groups": ["system:masters", "system:authenticated"]},
            "object": asked.object,
            "oldObject": None,
            "dryRun": True,
            "options": {"kind": "CreateOptions"},
        }


async def test_match_condition_exempts_objects_being_deleted(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/check"] = lambda _: {}
        conditions = [{"name": "not-deleting", "expression": match_conditions.NOT_DELETING}]
        rules = [RULE | {"operations": ["*"]}]
        webhook = hooks.webhook("/check", matchConditions=conditions, rules=rules)
        admission.use_validating([configuration(VALIDATING.kind(), webhook)])
        plain = attempt()
        assert plain.object is not None
        deleting = plain.object | {"metadata": plain.object["metadata"] | {"deletionTimestamp": "2026-11-27T10:00:00Z"}}

        await admission.validate(attempt(operation="UPDATE", object=deleting, old=plain.object))
        assert hooks.asked == []
        await admission.validate(attempt(operation="UPDATE", old=plain.object))
        await admission.validate(attempt(operation="DELETE", object=None, old=deleting))
        assert [review["operation"] for _, review in hooks.asked] == ["UPDATE", "DELETE"]


async def test_webhook_with_a_false_condition_is_not_called(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        conditions = [{"name": "never", "expression": match_conditions.NEVER}]
        admission.use_validating(
            [configuration(VALIDATING.kind(), hooks.webhook("/check", matchConditions=conditions))]
        )
        await admission.validate(attempt())
        assert hooks.asked == []


async def test_fields_added_by_a_webhook_are_defaulted(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        added = {"name": "side", "image": "busybox", "unknown": 1}
        hooks.handlers["/inject"] = lambda _: patch({"op": "add", "path": "/spec/containers/-", "value": added})
        admission.use_mutating([configuration(MUTATING.kind(), hooks.webhook("/inject"))])
        found = await admission.mutate(attempt())
        assert found is not None
        container = found["spec"]["containers"][1]
        assert (container["imagePullPolicy"], "unknown" in container) == ("Always", False)


async def test_reinvoked_webhook_sees_later_changes(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/first"] = lambda review: label(
            "seen", "-".join(sorted(review["object"]["metadata"]["labels"]))
        )
        hooks.handlers["/second"] = lambda _: label("two", "2")
        first = hooks.webhook("/first", reinvocationPolicy="IfNeeded")
        admission.use_mutating([configuration(MUTATING.kind(), first, hooks.webhook("/second"))])
        found = await admission.mutate(attempt())
        assert found is not None
        assert found["metadata"]["labels"]["seen"] == "a-seen-two"
        assert [path for path, _ in hooks.asked] == ["/first", "/second", "/first"]


DENIALS: list[tuple[Answer, int, str, str]] = [
    ({"status": {"message": "no luck", "code": 403, "reason": "Forbidden"}}, 403, "Forbidden", "denied the request: no luck"),
    ({"status": {"reason": "Conflict"}}, 400, "Conflict", "denied the request: Conflict"),
    ({}, 400, "", "denied the request without explanation"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "code", "reason", "text"), DENIALS)
async def test_denial_is_returned_to_the_client(
    authority: trustme.CA, answer: Answer, code: int, reason: str, text: str
) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/deny"] = lambda _: {"allowed": False} | answer
        admission.use_validating([configuration(VALIDATING.kind(), hooks.webhook("/deny"))])
        with pytest.raises(StatusError) as caught:
            await admission.validate(attempt())
        assert (caught.value.code, caught.value.reason) == (code, reason)
        assert caught.value.message == f'admission webhook "deny.lws.test" {text}'


FAILURES: list[tuple[Answer, str]] = [
    ({"code": 500}, "failed to call webhook: the webhook responded with status 500: broken"),
    ({"uid": "other"}, 'received invalid webhook response: expected response.uid="review-0", got "other"'),
    ({"patch": "e30="}, "unsupported patch type null"),
    (patch({"op": "remove", "path": "/nothing"}), "returned an invalid patch"),
    (patch({"op": "remove", "path": "/metadata"}), "does not result in an object"),
    (patch({"op": "replace", "path": "/spec/containers", "value": "x"}), "cannot unmarshal string"),
]


@pytest.mark.parametrize(("answer", "text"), FAILURES, ids=[text[:30] for _, text in FAILURES])
async def test_failing_webhook_fails_the_request(authority: trustme.CA, answer: Answer, text: str) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/fail"] = lambda _: answer
        admission.use_mutating([configuration(MUTATING.kind(), hooks.webhook("/fail"))])
        with pytest.raises(StatusError) as caught:
            await admission.mutate(attempt())
        assert (caught.value.code, caught.value.reason) == (500, "InternalError")
        assert caught.value.message.startswith("Internal error occurred: ")
        assert text in caught.value.message


async def test_unreachable_webhook_fails_the_request_unless_ignored(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        gone = hooks.webhook("/gone")
        gone["clientConfig"]["url"] = "https://127.0.0.1:1/gone"
        admission.use_validating([configuration(VALIDATING.kind(), gone)])
        with pytest.raises(StatusError) as caught:
            await admission.validate(attempt())
        assert caught.value.message == (
            'Internal error occurred: failed calling webhook "gone.lws.test": failed to call webhook:'
            ' Post "https://127.0.0.1:1/gone?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
        )
        admission.use_validating([configuration(VALIDATING.kind(), gone | {"failurePolicy": "Ignore"})])
        await admission.validate(attempt())


async def test_slow_webhook_fails_the_request(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/slow"] = lambda _: {"never": True}
        declared = configuration(VALIDATING.kind(), hooks.webhook("/slow"))
        declared["webhooks"][0]["timeoutSeconds"] = 0
        admission.use_validating([declared])
        with pytest.raises(StatusError, match="context deadline exceeded after 0s"):
            await admission.validate(attempt())


async def test_connection_closed_by_the_webhook_is_reopened(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/x"] = lambda _: {}
        admission.use_validating([configuration(VALIDATING.kind(), hooks.webhook("/x"))])
        await admission.validate(attempt())
        hooks.hang_up = True
        await admission.validate(attempt())
        assert len(hooks.asked) == 2


async def test_malformed_review_fails_the_request(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        admission.use_validating([configuration(VALIDATING.kind(), hooks.webhook("/raw"))])
        for raw, text in ((b"<html>", "received invalid webhook response"), (b"{}", "webhook response is absent")):
            hooks.raw = raw
            with pytest.raises(StatusError, match=text):
                await admission.validate(attempt())


async def test_untrusted_certificate_fails_the_request(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/x"] = lambda _: {}
        stranger = hooks.webhook("/x")
        other = trustme.CA(key_type=trustme.KeyType.ECDSA).cert_pem.bytes()
        stranger["clientConfig"]["caBundle"] = base64.b64encode(other).decode()
        admission.use_validating([configuration(VALIDATING.kind(), stranger)])
        with pytest.raises(StatusError, match="certificate verify failed"):
            await admission.validate(attempt())


async def test_webhook_service_is_not_supported(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        service = {"service": {"namespace": "default", "name": "webhook", "path": "/x"}}
        admission.use_validating([configuration(VALIDATING.kind(), hooks.webhook("/x", clientConfig=service))])
        with pytest.raises(StatusError, match="service default/webhook cannot be reached from this API server"):
            await admission.validate(attempt())


async def test_dry_run_skips_webhooks_with_side_effects(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        declared = configuration(VALIDATING.kind(), hooks.webhook("/x"))
        declared["webhooks"][0]["sideEffects"] = "Some"
        admission.use_validating([declared])
        with pytest.raises(StatusError, match="does not support dry run"):
            await admission.validate(attempt(dry_run=True))


SELECTED: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("the rule", {}, {}, True),
    ("another operation", {}, {"operation": "UPDATE"}, False),
    ("a subresource", {}, {"subresource": "status"}, False),
    ("all resources", {"rules": [RULE | {"resources": ["*"], "apiGroups": ["*"]}]}, {}, True),
    ("all subresources", {"rules": [RULE | {"resources": ["pods/*"]}]}, {"subresource": "status"}, True),
    ("cluster scope only", {"rules": [RULE | {"scope": "Cluster"}]}, {}, False),
    ("objects with the label", {"objectSelector": {"matchLabels": {"a": "b"}}}, {}, True),
    ("objects with another label", {"objectSelector": {"matchLabels": {"a": "c"}}}, {}, False),
    ("namespaces with the label", {"namespaceSelector": {"matchLabels": {"env": "test"}}}, {}, True),
    ("namespaces with another label", {"namespaceSelector": {"matchLabels": {"env": "prod"}}}, {}, False),
]


@pytest.mark.parametrize(
    ("fields", "change", "expected"), [case[1:] for case in SELECTED], ids=[case[0] for case in SELECTED]
)
async def test_webhook_is_selected_by_its_rules_and_selectors(
    authority: trustme.CA, fields: dict[str, Any], change: dict[str, Any], expected: bool
) -> None:
    async with serving(authority) as (hooks, admission):
        hooks.handlers["/x"] = lambda _: {}
        admission.use_validating([configuration(VALIDATING.kind(), hooks.webhook("/x", **fields))])
        await admission.validate(attempt(**change))
        assert bool(hooks.asked) is expected


async def test_webhook_configurations_are_exempt_from_webhooks(authority: trustme.CA) -> None:
    async with serving(authority) as (hooks, admission):
        everything = hooks.webhook("/x", rules=[{**RULE, "apiGroups": ["*"], "resources": ["*"]}])
        declared = configuration(MUTATING.kind(), everything)
        admission.use_mutating([declared])
        about = attempt(kind=MUTATING.kind(), object=declared, namespace="")
        assert await admission.mutate(about) is declared
