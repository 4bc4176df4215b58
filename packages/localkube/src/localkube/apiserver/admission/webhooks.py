"""Calls admission webhooks, as the configurations in the API declare them.

Mutating webhooks are called in sequence and may patch the object. Validating webhooks are called concurrently. In: an
`Attempt`. Out: the admitted object, or an error with the message of kube-apiserver. A `WebhookTransport` sends the
reviews. This module applies timeouts and failure policies.
"""

import asyncio
import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.client.transport import Response
from kuberuntime.manifests import nesting
from kuberuntime.objects import meta
from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.admission.webhook_https import HTTPSWebhookTransport
from localkube.apiserver.admission.webhook_rules import Attempt, Hook, HookIndex, NamespaceLabels, parse_hooks
from localkube.apiserver.admission.webhook_transport import WebhookConnectionError, WebhookRequest, WebhookTransport
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.model.kind import Operation, UndecodableError
from localkube.apiserver.patch import json_patch

BAD_REQUEST: Final = 400
OK: Final = 200
DRY_RUN_SAFE: Final = {"None", "NoneOnDryRun"}


class CallError(Exception):
    """The webhook could not be called, or its response was invalid."""


class Admission:
    """The webhooks of one API server."""

    def __init__(
        self,
        *,
        namespace_labels: NamespaceLabels,
        uid: Callable[[], str],
        transport: WebhookTransport | None = None,
    ) -> None:
        self._namespace_labels = namespace_labels
        self._uid = uid
        self._mutating = HookIndex()
        self._validating = HookIndex()
        self._transport = transport or HTTPSWebhookTransport()
        self._is_disconnected = False

    def use_mutating(self, configurations: Iterable[JSONObject]) -> None:
        """Replace the mutating webhooks by the webhooks in these configurations."""
        self._mutating = HookIndex(parse_hooks(configurations))

    def use_validating(self, configurations: Iterable[JSONObject]) -> None:
        """Replace the validating webhooks by the webhooks in these configurations."""
        self._validating = HookIndex(parse_hooks(configurations))

    async def mutate(self, attempt: Attempt) -> JSONObject | None:
        """Return the object with the changes of the mutating webhooks. Defaults are set after each change."""
        hooks = self._mutating.find(attempt)
        again: list[Hook] = []
        for index, hook in enumerate(hooks):
            changed = await self._mutate_once(hook, attempt)
            if changed.object != attempt.object:
                # A webhook that was already called can request a second call after later webhooks changed the object.
                again = [
                    earlier for earlier in hooks[:index] if earlier.declaration.get("reinvocationPolicy") == "IfNeeded"
                ]
                attempt = changed
        for hook in again:
            attempt = await self._mutate_once(hook, attempt)
        return attempt.object

    async def validate(self, attempt: Attempt) -> None:
        """Reject a write that a validating webhook denies, with the message of the first such webhook."""
        hooks = [hook for hook in self._validating.find(attempt) if hook.selects(attempt, self._namespace_labels)]
        if not hooks:
            return
        async with asyncio.TaskGroup() as group:
            verdicts = [group.create_task(self._verdict(hook, attempt)) for hook in hooks]
        for verdict in verdicts:
            denial = verdict.result()
            if denial is not None:
                raise denial

    async def interrupt(self) -> None:
        """Disconnect from all webhooks. All calls fail like refused connections until `resume` is called."""
        self._is_disconnected = True

    async def resume(self) -> None:
        """Resume calls to webhooks, after `interrupt`."""
        self._is_disconnected = False

    async def close(self) -> None:
        """Release the connections."""
        await self._transport.close()

    async def _verdict(self, hook: Hook, attempt: Attempt) -> StatusError | None:
        try:
            await self._call_webhook(hook, attempt)
        except StatusError as denial:
            return denial
        return None

    async def _mutate_once(self, hook: Hook, attempt: Attempt) -> Attempt:
        if not hook.selects(attempt, self._namespace_labels):
            return attempt
        response = await self._call_webhook(hook, attempt)
        patch = response.get("patch")
        if not patch or attempt.object is None:
            return attempt
        patched = _apply_patch(hook, attempt.object, response)
        if patched == attempt.object:
            return attempt
        try:
            prepared = attempt.kind.prepare(_operation(attempt), patched, attempt.old)
        except UndecodableError as error:
            raise apierrors.internal_error(str(error)) from error
        return replace(attempt, object=prepared)

    async def _call_webhook(self, hook: Hook, attempt: Attempt) -> JSONObject:
        """Return the webhook's response, or an empty response if its failure is ignored.

        Raise an error if it denies the request.
        """
        if attempt.dry_run and hook.declaration["sideEffects"] not in DRY_RUN_SAFE:
            raise apierrors.bad_request(f"admission webhook {render(hook.name)} does not support dry run")
        try:
            response = await self._call(hook, attempt)
        except CallError as error:
            if hook.declaration["failurePolicy"] == "Ignore":
                return {}
            raise apierrors.internal_error(f"failed calling webhook {render(hook.name)}: {error}") from error
        attempt.warnings.extend(response.get("warnings") or ())
        if not response.get("allowed"):
            raise _denial_error(hook.name, response.get("status") or {})
        return response

    async def _call(self, hook: Hook, attempt: Attempt) -> JSONObject:
        """Send one review with the configured timeout. Return the `response` of the review."""
        uid = self._uid()
        client, seconds = hook.declaration["clientConfig"], hook.declaration["timeoutSeconds"]
        if "url" not in client:  # Services are not reachable, because there is no virtual network
            place = f"{client['service']['namespace']}/{client['service']['name']}"
            text = f"service {place} cannot be reached from this API server. Use clientConfig.url"
            raise CallError(f"failed to call webhook: {text}")
        try:
            request = WebhookRequest(client["url"], review(uid, attempt), seconds, client.get("caBundle", ""))
            async with timeouts.within(seconds):
                response = _response_object(await self._send(request))
        except (WebhookConnectionError, TimeoutError, ValueError, CallError) as error:
            raise CallError(f"failed to call webhook: {_reason(client, error, seconds)}") from error
        return _response(response, uid)

    async def _send(self, request: WebhookRequest) -> Response:
        if self._is_disconnected:
            raise WebhookConnectionError(f"dial {request.url}: connect: connection refused")
        return await self._transport.request(request)


def _response_object(response: Response) -> bytes:
    if response.status != OK:
        raise CallError(
            f"the webhook responded with status {response.status}: {response.body[:200].decode(errors='replace')}"
        )
    return response.body


def _reason(client: JSONObject, error: Exception, seconds: int) -> str:
    text = f"context deadline exceeded after {seconds}s" if isinstance(error, TimeoutError) else str(error)
    if isinstance(error, CallError):
        return text
    return f'Post "{client["url"]}?timeout={seconds}s": {text or type(error).__name__}'


def _operation(attempt: Attempt) -> Operation:
    if attempt.subresource == "status":
        return "status"
    if attempt.subresource == "resize":
        return "resize"
    return "create" if attempt.operation == "CREATE" else "update"


def review(uid: str, attempt: Attempt) -> bytes:
    """Encode the AdmissionReview of an attempt."""
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


def _response(body: bytes, uid: str) -> JSONObject:
    try:
        decoded = nesting.decode(body)
    except msgspec.DecodeError as error:
        raise CallError(f"received invalid webhook response: {error}") from error
    response = decoded.get("response") if isinstance(decoded, dict) else None
    if not isinstance(response, dict):
        raise CallError("received invalid webhook response: webhook response is absent")
    if response.get("uid") != uid:
        rendered = render(response.get("uid", ""))
        raise CallError(f"received invalid webhook response: expected response.uid={render(uid)}, got {rendered}")
    return response


def _apply_patch(hook: Hook, obj: JSONObject, response: JSONObject) -> JSONObject:
    if response.get("patchType") != "JSONPatch":
        text = f"unsupported patch type {render(response.get('patchType'))}"
        raise apierrors.internal_error(f"failed calling webhook {render(hook.name)}: {text}")
    try:
        operations = nesting.decode(base64.b64decode(response["patch"], validate=True))
        patched = json_patch.apply(obj, operations)
    except (binascii.Error, msgspec.DecodeError, StatusError) as error:
        raise apierrors.internal_error(f"webhook {render(hook.name)} returned an invalid patch: {error}") from error
    if not isinstance(patched, dict) or not meta.metadata(patched):
        raise apierrors.internal_error(f"the patch of webhook {render(hook.name)} does not result in an object")
    return patched


def _denial_error(name: str, status: JSONObject) -> StatusError:
    denied = f"admission webhook {render(name)} denied the request"
    explanation = status.get("message") or status.get("reason")
    message = f"{denied}: {explanation}" if explanation else f"{denied} without explanation"
    code = max(int(status.get("code") or 0), BAD_REQUEST)
    return StatusError(code, str(status.get("reason") or ""), message, status.get("details"))
