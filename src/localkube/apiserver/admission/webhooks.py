"""Calling admission webhooks, as the configurations in the API ask for it.

Mutating webhooks are asked one after the other and may patch the object; validating ones all at once. In: an
`Attempt`. Out: the object to go on with, or a refusal in the words of kube-apiserver. This is the only part of the API
server that speaks to others: HTTPS with the configuration's CA bundle, connections kept alive.
"""

import asyncio
import base64
import binascii
import os
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import aiohttp
import msgspec

from kuberuntime import timeouts
from kuberuntime.objects import meta, nesting
from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.admission.webhook_rules import Attempt, Hook, HookIndex, NamespaceLabels, hooks_of
from localkube.apiserver.model import refusal
from localkube.apiserver.model.kind import Operation, UndecodableError
from localkube.apiserver.model.refusal import RefusalError
from localkube.apiserver.patch import json_patch

BAD_REQUEST: Final = 400
OK: Final = 200
DRY_RUN_SAFE: Final = {"None", "NoneOnDryRun"}


class CallError(Exception):
    """The webhook could not be asked, or its answer makes no sense."""


CONNECTIONS: Final = 8
"""Connections to one webhook. Each costs both ends some 300 KiB, and reviews take about a millisecond."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a webhook listens, and under which name its certificate is checked."""

    url: str
    server_name: str | None = None


def no_services(service: JSONObject) -> Target:
    """Refuse a webhook that is named by a service: there is no virtual network that leads to it."""
    place = f"{service['namespace']}/{service['name']}"
    raise CallError(f"service {place} cannot be reached from this API server: use clientConfig.url")


class Admission:
    """The webhooks of one API server."""

    def __init__(
        self,
        *,
        namespace_labels: NamespaceLabels,
        uid: Callable[[], str],
        resolve: Callable[[JSONObject], Target] = no_services,
    ) -> None:
        self._namespace_labels = namespace_labels
        self._uid = uid
        self._resolve = resolve
        self._mutating = HookIndex()
        self._validating = HookIndex()
        self._session: aiohttp.ClientSession | None = None

    def use_mutating(self, configurations: Iterable[JSONObject]) -> None:
        """Ask the mutating webhooks of these configurations from now on."""
        self._mutating = HookIndex(hooks_of(configurations))

    def use_validating(self, configurations: Iterable[JSONObject]) -> None:
        """Ask the validating webhooks of these configurations from now on."""
        self._validating = HookIndex(hooks_of(configurations))

    async def mutate(self, attempt: Attempt) -> JSONObject | None:
        """Return the object as the mutating webhooks want it, defaulted again after each change."""
        hooks = self._mutating.find(attempt)
        again: list[Hook] = []
        for index, hook in enumerate(hooks):
            changed = await self._mutate_once(hook, attempt)
            if changed.object != attempt.object:
                # Those asked before may ask to see what later ones made of it.
                again = [earlier for earlier in hooks[:index] if _reinvoked(earlier)]
                attempt = changed
        for hook in again:
            attempt = await self._mutate_once(hook, attempt)
        return attempt.object

    async def validate(self, attempt: Attempt) -> None:
        """Refuse what a validating webhook denies; the first in order is heard."""
        hooks = [hook for hook in self._validating.find(attempt) if hook.selects(attempt, self._namespace_labels)]
        if not hooks:
            return
        async with asyncio.TaskGroup() as group:
            verdicts = [group.create_task(self._verdict(hook, attempt)) for hook in hooks]
        for verdict in verdicts:
            denial = verdict.result()
            if denial is not None:
                raise denial

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _verdict(self, hook: Hook, attempt: Attempt) -> RefusalError | None:
        try:
            await self._ask(hook, attempt)
        except RefusalError as denial:
            return denial
        return None

    async def _mutate_once(self, hook: Hook, attempt: Attempt) -> Attempt:
        if not hook.selects(attempt, self._namespace_labels):
            return attempt
        response = await self._ask(hook, attempt)
        patch = response.get("patch")
        if not patch or attempt.object is None:
            return attempt
        patched = _patched(hook, attempt.object, response)
        if patched == attempt.object:
            return attempt
        try:
            prepared = attempt.kind.prepare(_operation(attempt), patched, attempt.old)
        except UndecodableError as error:
            raise refusal.internal_error(str(error)) from error
        return replace(attempt, object=prepared)

    async def _ask(self, hook: Hook, attempt: Attempt) -> JSONObject:
        """Return the webhook's response, empty where its failure is ignored; raise its denial."""
        if attempt.dry_run and hook.declaration["sideEffects"] not in DRY_RUN_SAFE:
            raise refusal.bad_request(f"admission webhook {render(hook.name)} does not support dry run")
        try:
            response = await self._call(hook, attempt)
        except CallError as error:
            if hook.ignores_failure:
                return {}
            raise refusal.internal_error(f"failed calling webhook {render(hook.name)}: {error}") from error
        attempt.warnings.extend(response.get("warnings") or ())
        if not response.get("allowed"):
            raise _denial(hook.name, response.get("status") or {})
        return response

    async def _call(self, hook: Hook, attempt: Attempt) -> JSONObject:
        uid = self._uid()
        client, seconds = hook.declaration["clientConfig"], hook.declaration["timeoutSeconds"]
        try:
            target = Target(client["url"]) if "url" in client else self._resolve(client["service"])
            context = tls_context(client.get("caBundle", ""))
            async with timeouts.within(seconds):
                answer = await self._post(target, context, review(uid, attempt), seconds)
        except (aiohttp.ClientError, OSError, ValueError, CallError) as error:
            raise CallError(f"failed to call webhook: {_reason(client, error, seconds)}") from error
        return _response(answer, uid)

    async def _post(self, target: Target, context: ssl.SSLContext, body: bytes, seconds: int) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit_per_host=CONNECTIONS))
        request = {
            "data": body,
            "params": {"timeout": f"{seconds}s"},
            "headers": {"content-type": "application/json", "accept": "application/json"},
            "ssl": context,
            "server_hostname": target.server_name,
            "allow_redirects": False,
        }
        try:
            return await _exchange(self._session, target.url, request)
        except aiohttp.ServerDisconnectedError:
            # An idle connection that the webhook closed meanwhile; reviews may be repeated.
            return await _exchange(self._session, target.url, request)


async def _exchange(session: aiohttp.ClientSession, url: str, request: dict[str, Any]) -> bytes:
    async with session.post(url, **request) as answer:
        content = await answer.read()
        if answer.status != OK:
            raise CallError(f"the webhook answered {answer.status}: {content[:200].decode(errors='replace')}")
        return content


@lru_cache(maxsize=64)
def tls_context(ca_bundle: str) -> ssl.SSLContext:
    """Return the TLS settings that trust a CA bundle (base64 of PEM), or the system's where there is none."""
    bundle = base64.b64decode(ca_bundle).decode() if ca_bundle else None
    context = ssl.create_default_context(cadata=bundle)
    # Many authorities lack the key identifiers that Python 3.13 began to insist on; kube-apiserver accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _reason(client: JSONObject, error: Exception, seconds: int) -> str:
    if isinstance(error, CallError) or "url" not in client:
        return str(error)
    match error:
        case TimeoutError():
            text = f"context deadline exceeded after {seconds}s"
        case aiohttp.ClientSSLError():
            text = f"tls: {error}"
        case aiohttp.ClientConnectorError():
            cause = os.strerror(error.errno).lower() if error.errno else str(error.os_error)
            text = f"dial tcp {error.host}:{error.port}: connect: {cause}"
        case _:
            text = str(error) or type(error).__name__
    return f'Post "{client["url"]}?timeout={seconds}s": {text}'


def _reinvoked(hook: Hook) -> bool:
    return bool(hook.declaration.get("reinvocationPolicy") == "IfNeeded")


def _operation(attempt: Attempt) -> Operation:
    if attempt.subresource == "status":
        return "status"
    return "create" if attempt.operation == "CREATE" else "update"


def review(uid: str, attempt: Attempt) -> bytes:
    """Encode the AdmissionReview that asks about an attempt."""
    resource = attempt.kind.resource
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    plural = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    request: JSONObject = {
        "uid": uid,
        "kind": kind,
        "resource": plural,
        "requestKind": kind,
        "requestResource": plural,
        "name": attempt.name,
        "namespace": attempt.namespace,
        "operation": attempt.operation,
        "userInfo": {"username": attempt.user, "groups": ["system:masters", "system:authenticated"]},
        "object": attempt.object,
        "oldObject": attempt.old,
        "dryRun": attempt.dry_run,
        "options": attempt.options or None,
    }
    if attempt.subresource:
        request |= {"subResource": attempt.subresource, "requestSubResource": attempt.subresource}
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def _response(answer: bytes, uid: str) -> JSONObject:
    try:
        decoded = nesting.decode(answer)
    except msgspec.DecodeError as error:
        raise CallError(f"received invalid webhook response: {error}") from error
    response = decoded.get("response") if isinstance(decoded, dict) else None
    if not isinstance(response, dict):
        raise CallError("received invalid webhook response: webhook response is absent")
    if response.get("uid") != uid:
        found = render(response.get("uid", ""))
        raise CallError(f"received invalid webhook response: expected response.uid={render(uid)}, got {found}")
    return response


def _patched(hook: Hook, obj: JSONObject, response: JSONObject) -> JSONObject:
    if response.get("patchType") != "JSONPatch":
        text = f"unsupported patch type {render(response.get('patchType'))}"
        raise refusal.internal_error(f"failed calling webhook {render(hook.name)}: {text}")
    try:
        operations = nesting.decode(base64.b64decode(response["patch"], validate=True))
        patched = json_patch.apply(obj, operations)
    except (binascii.Error, msgspec.DecodeError, RefusalError) as error:
        raise refusal.internal_error(f"webhook {render(hook.name)} answered with a bad patch: {error}") from error
    if not isinstance(patched, dict) or not meta.metadata(patched):
        raise refusal.internal_error(f"the patch of webhook {render(hook.name)} leaves no object")
    return patched


def _denial(name: str, status: JSONObject) -> RefusalError:
    denied = f"admission webhook {render(name)} denied the request"
    explanation = status.get("message") or status.get("reason")
    message = f"{denied}: {explanation}" if explanation else f"{denied} without explanation"
    code = max(int(status.get("code") or 0), BAD_REQUEST)
    return RefusalError(code, str(status.get("reason") or ""), message, status.get("details"))
