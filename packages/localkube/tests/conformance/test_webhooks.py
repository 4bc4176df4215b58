"""Tests the requests, patches and rejections of admission webhooks."""

import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Any

import trustme
from aiohttp import web
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import named
from tests.conformance.transcript import Entry, Session

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)

ANSWERS: dict[str, JSONObject] = {
    "allow": {"allowed": True},
    "warn": {"allowed": True, "warnings": ["mind the step"]},
    "deny": {"allowed": False},
    "say": {"allowed": False, "status": {"message": "because", "code": 403, "reason": "Forbidden"}},
    "code": {"allowed": False, "status": {"message": "because", "code": 422, "reason": "Invalid"}},
    "label": {"allowed": True, "patch": [{"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}]},
    "break": {"allowed": True, "patch": [{"op": "remove", "path": "/absent"}]},
}


@asynccontextmanager
async def answering(seen: list[JSONObject]) -> AsyncIterator[tuple[str, str]]:
    """Serve webhooks whose responses depend on the path. Yield the address and the CA bundle."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def answer(request: web.Request) -> web.Response:
        review = await request.json()
        seen.append(review["request"])
        how = request.path.strip("/")
        if how == "odd":
            return web.json_response({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"})
        if how == "fail":
            return web.Response(status=500, text="broken")
        response = dict(ANSWERS[how]) | {"uid": review["request"]["uid"]}
        if "patch" in response:
            patch = base64.b64encode(json.dumps(response["patch"]).encode()).decode()
            response |= {"patch": patch, "patchType": "JSONPatch"}
        return web.json_response({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response})

    application = web.Application()
    application.router.add_post("/{how}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"https://127.0.0.1:{port}", base64.b64encode(authority.cert_pem.bytes()).decode()
    finally:
        await runner.cleanup()


def webhook(how: str, address: str, bundle: str, namespace: str, **fields: Any) -> JSONObject:
    """Return a webhook for ConfigMaps in one namespace."""
    return {
        "name": f"{how}.conformance.example.com",
        "clientConfig": {"url": f"{address}/{how}", "caBundle": bundle},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "objectSelector": {"matchLabels": {"ask": how}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        **fields,
    }


def asked(seen: list[JSONObject]) -> list[JSONObject]:
    """Return the webhook requests without generated values."""
    return [{name: value for name, value in one.items() if name not in {"uid", "userInfo"}} for one in seen]


def probing(how: str) -> JSONObject:
    """Return a ConfigMap that shows whether a webhook is called."""
    return {"metadata": {"name": "probe", "labels": {"ask": how}}}


def shapes(questions: list[JSONObject]) -> JSON:
    """Return the distinct shapes of requests. kube-apiserver repeats a request if its cache was out of date."""
    found = [[one["operation"], one.get("name"), sorted(one), sorted(one.get("options") or {})] for one in questions]
    return [shape for shape, _ in groupby(found)]


def test_webhooks_mutate_and_deny(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        seen: list[JSONObject] = []
        async with answering(seen) as (address, bundle):
            place = (address, bundle, session.namespace)
            mutating = [webhook(how, *place) for how in ("label", "break")]
            validating = [webhook(how, *place) for how in ("allow", "warn", "deny", "say", "code", "odd", "fail")]
            validating += [webhook("fail", *place, name="ignored.conformance.example.com", failurePolicy="Ignore", objectSelector={"matchLabels": {"ask": "ignored"}})]  # fmt: skip
            quiet = Session(session.transport, session.namespace)
            await quiet.create(MUTATING_WEBHOOK_CONFIGURATIONS, named("conformance", webhooks=mutating))
            await quiet.create(VALIDATING_WEBHOOK_CONFIGURATIONS, named("conformance", webhooks=validating))
            try:
                await session.await_known(CONFIG_MAPS, probing("label"), lambda answer: "by" in meta.labels(answer))
                await session.await_known(CONFIG_MAPS, probing("deny"), lambda answer: answer["kind"] == "Status")
                seen.clear()
                for how in ("none", "label", "break", "allow", "warn", "deny", "say", "code", "odd", "fail", "ignored"):
                    await session.create(CONFIG_MAPS, {"metadata": {"name": how, "labels": {"ask": how}}})
                await session.create(
                    CONFIG_MAPS, {"metadata": {"name": "dry", "labels": {"ask": "deny"}}}, dryRun="All"
                )
                await session.patch(CONFIG_MAPS, "allow", {"data": {"a": "1"}})
                await session.patch(CONFIG_MAPS, "allow", {"metadata": {"labels": {"ask": "deny"}}})
                await session.delete(CONFIG_MAPS, "warn")
                await session.get(CONFIG_MAPS)
            finally:
                await quiet.delete(MUTATING_WEBHOOK_CONFIGURATIONS, "conformance")
                await quiet.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, "conformance")
            session.entries.append(Entry("what the webhooks were asked", 0, "", shapes(asked(seen))))

    same(sequence)
