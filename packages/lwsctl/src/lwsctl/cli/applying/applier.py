"""Applies documents server-side after validating all of them. It can also validate documents without a server."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.client.requests import select_one
from kuberuntime.errors import AlreadyExistsError, APIError, ConflictError, NotFoundError
from kuberuntime.objects import meta, names
from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON, JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PERSISTENT_VOLUME_CLAIMS
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.decisions.admissionchecks import NoGang, Support, validate_leaderworkerset
from lwsctl.cli.applying import serverside, unknownfields
from lwsctl.cli.applying.kindlookup import Discovery, UnknownKindError
from lwsctl.cli.applying.serverside import ApplyResult
from lwsctl.cli.cluster.target import Session, describe_warning
from lwsctl.cli.errors import CommandError, TimedOutError
from lwsctl.cli.reading import sharedclaims
from lwsctl.cli.reading.manifests import Document, batches
from lwsctl.cli.reading.serviceselectors import warn_about_services
from lwsctl.cli.views.terminal import print_text
from lwsctl.rollout import snapshots

MANAGER = "lws-cli"
"""The field manager for applied manifests. The controllers use `lws`."""

DEFAULT_NAMESPACE = "default"
"""The default namespace if no kubeconfig is read."""


WHOLE_PATCH: Final = re.compile(r'^\s*"" is invalid: patch: Invalid value: "\{(?:[^"\\]|\\.)*\}": ')
"""The prefix of an API server error that quotes the whole object but does not contain the object name."""

MOST_CLAIMS: Final = 10
"""The maximum number of PersistentVolumeClaims to read from the cluster."""

ANY: Final = NoGang(Support(is_enabled=True, provider="kubernetes"))
"""The assumed scheduler support. It is unknown, so `spec.scheduling` is validated regardless of schedulers."""


def check_locally(
    documents: Sequence[Document], namespace: str, find: Callable[[JSONObject], JSONObject | None] = lambda _: None
) -> None:
    """Run the checks that do not require an API server, such as the admission checks of LeaderWorkerSets.

    `find` returns the stored object in the cluster, or None if there is none.
    """
    failures = [
        document.message(str(error))
        for document in documents
        if document.object["kind"] == LEADERWORKERSETS.kind
        for error in _errors(with_namespace(document.object, namespace), find(document.object))
    ]
    if failures:
        raise CommandError("\n".join(failures))


def _errors(obj: JSONObject, stored: JSONObject | None) -> Sequence[object]:
    try:
        old = None if stored is None else decode(stored)
        return validate_leaderworkerset(decode(snapshots.overlay(stored, obj)), old, ANY)
    except ValueError as error:
        return [error]


def with_namespace(obj: JSONObject, namespace: str) -> JSONObject:
    """Set the namespace of an object that does not specify one."""
    own = obj["metadata"]
    return obj if own.get("namespace") else {**obj, "metadata": {**own, "namespace": namespace}}


class Applier:
    """Applies documents in one session."""

    def __init__(self, session: Session, *, force: bool = False, previous_lines: Sequence[str] = ()) -> None:
        """Apply documents.

        Print `previous_lines` first, which report the objects that were created for the documents.
        """
        self._previous_lines = tuple(previous_lines)
        self._client: Client = session.client
        self._kubectl = session.kubectl
        self._namespace = session.namespace
        self._discovery = Discovery(session.client)
        self._force = force
        self.stored: list[JSONObject] = []

    async def check(self, documents: Sequence[Document]) -> None:
        """Validate all documents on the API server before any is applied. Raise all errors together.

        An object that requires a different document of the same batch (its namespace or CRD) is validated when it is
        applied.
        """
        failures: list[str] = []
        for batch in batches(documents):
            async with asyncio.TaskGroup() as tasks:
                checks = [tasks.create_task(self._find_error(document, documents)) for document in batch]
            failures += filter(None, (check.result() for check in checks))
        if failures:
            raise CommandError("\n".join([*failures, self._summary([])]))

    async def _shared_claims(self, documents: Sequence[Document]) -> list[str]:
        """Return warnings about claims that ranks cannot share.

        There are no warnings about claims that cannot be read.
        """
        keys = sorted(sharedclaims.missing_claims(documents, self._namespace))[:MOST_CLAIMS]
        responses = await asyncio.gather(
            *(self._client.find(PERSISTENT_VOLUME_CLAIMS, key) for key in keys), return_exceptions=True
        )
        stored = [claim for claim in responses if isinstance(claim, dict)]
        return [*sharedclaims.warn_about_claims(documents, stored, self._namespace)]

    async def apply(self, documents: Sequence[Document]) -> list[str]:
        """Apply documents in order, and some documents concurrently.

        Return the warnings and a line for each object. Errors list the applied objects.
        """
        for warning in (*warn_about_services(documents), *await self._shared_claims(documents)):
            print_text(warning, err=True)
        lines: list[str] = []
        for batch in batches(documents):
            results = await asyncio.gather(*map(self._apply, batch), return_exceptions=True)
            lines += [result for result in results if isinstance(result, str)]
            for document, error in zip(batch, results, strict=True):
                if isinstance(error, APIError | UnknownKindError):
                    description = await self._describe_error(document, error)
                    raise CommandError(f"{description}\n{self._summary(lines)}") from error
                if isinstance(error, BaseException):
                    raise error
        return lines

    def _summary(self, lines: Sequence[str]) -> str:
        """Return the list of objects that were applied before an error."""
        results = [*self._previous_lines, *lines]
        return f"already applied: {', '.join(results)}" if results else "no objects were applied"

    async def dry_run(self, document: Document) -> "DryRunResult":
        """Return the result of applying a document as a dry run."""
        try:
            result = await self._send(document, dry_run=True)
        except (APIError, UnknownKindError) as error:
            raise CommandError(await self._describe_error(document, error, "lws apply --create-namespace")) from error
        return DryRunResult(document, result.before, result.object)

    async def _send(self, document: Document, *, dry_run: bool = False) -> ApplyResult:
        resource = await self._discovery.resource_of(document.object)
        obj = with_namespace(document.object, self._namespace) if resource.namespaced else document.object
        token = describe_warning.set(document.message)
        try:
            return await serverside.apply(
                self._client, resource, obj, manager=MANAGER, force=self._force, dry_run=dry_run
            )
        finally:
            describe_warning.reset(token)

    async def _apply(self, document: Document) -> str:
        result = await self._send(document)
        if result.object["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind:
            await wait_until_established(self._client, meta.key(result.object))
        self.stored.append(result.object)
        return f"{document.title} {result.verb}{_takeover_note(result)}"

    async def _find_error(self, document: Document, documents: Sequence[Document]) -> str | None:
        try:
            await self._send(document, dry_run=True)
        except UnknownKindError as error:
            return None if defines_kind(documents, document) else describe(document, error, self._kubectl)
        except NotFoundError as error:
            namespace = document.object["metadata"].get("namespace") or self._namespace
            return None if creates_namespace(documents, namespace) else describe(document, error, self._kubectl)
        except APIError as error:
            return await self._describe_error(document, error)
        return None

    async def _describe_error(self, document: Document, error: Exception, creator: str = "") -> str:
        return describe(document, error, self._kubectl, creator) + await unknownfields.advice(
            self._client, document.object, str(error)
        )


def _takeover_note(result: ApplyResult) -> str:
    """Return a note about fields whose ownership moves from other commands of the same user."""
    if not result.taken_fields:
        return ""
    fields = ", ".join(f"{path.removeprefix('.')} {change}".rstrip() for path, change in result.taken_fields.items())
    return f" (taken over from {' and '.join(result.previous_owners)}: {fields})"


def describe(document: Document, error: Exception, kubectl: str, creator: str = "") -> str:
    """Build the message for a rejected document from its location and the server's message.

    `creator` is the command that creates a missing namespace. It is empty for the current command.
    """
    text, advice = WHOLE_PATCH.sub("", str(error)), ""
    if isinstance(error, ConflictError) and "Apply failed with" in str(error):
        advice = "; use --force-conflicts to take ownership of the fields"
    if isinstance(error, NotFoundError) and error.details.get("kind") == "namespaces":
        name = error.details.get("name")
        by_hand = f"create it with `{kubectl} create namespace {name}`, or " if kubectl else ""
        advice = f"; {by_hand}{f'use `{creator}`' if creator else 'add --create-namespace to this command'}"
        if names.dns_1123_label(str(name)):
            text, advice = (
                f"metadata.namespace: Invalid value: {render(name)}: {names.dns_1123_label(str(name))[0]}",
                "",
            )
    return document.message(f"{text}{advice}")


def defines_kind(documents: Sequence[Document], candidate: Document) -> bool:
    """Return whether a CRD among the documents defines the kind of the given document."""
    return candidate.object["kind"] in {defined_kind(document.object) for document in documents}


def defined_kind(obj: JSONObject) -> str | None:
    """Return the kind that an object defines, or None if it is not a valid CRD."""
    spec: JSON = meta.spec(obj) if obj["kind"] == "CustomResourceDefinition" else {}
    names = spec.get("names") if isinstance(spec, dict) else None
    kind = names.get("kind") if isinstance(names, dict) else None
    return kind if isinstance(kind, str) else None


def creates_namespace(documents: Sequence[Document], namespace: str) -> bool:
    """Return whether a document creates this namespace."""
    return any(
        document.object["kind"] == "Namespace" and document.object["metadata"].get("name") == namespace
        for document in documents
    )


PATIENCE: Final = 30.0
"""The maximum time in seconds until a CRD is established. A healthy API server needs one second."""


async def wait_until_established(client: Client, key: ObjectKey) -> None:
    """Wait until the API server serves the kind that a CRD defines."""
    # Few manifests contain CRDs. Skip these imports for all others.
    from kuberuntime.cache.informer import Informer
    from lwsctl.cli.watchwarnings import following

    informer = Informer(client, select_one(CUSTOM_RESOURCE_DEFINITIONS, key))

    def established() -> bool | None:
        return True if meta.is_condition_true(informer.store.get(key) or {}, "Established") else None

    try:
        async with timeouts.within(PATIENCE), following(informer) as objects:
            await objects.wait_for(established)
    except TimeoutError as error:
        conditions = meta.status(informer.store.get(key) or {}).get("conditions") or []
        states = "; ".join(
            f"{condition.get('type')} is {condition.get('status')}: {mask_message(str(condition.get('message')))}"
            for condition in conditions
        )
        raise TimedOutError(
            f"customresourcedefinition/{key.name} is not established after {PATIENCE:g} s: {states or 'no controller is active'}"
        ) from error


class DryRunResult(Struct, frozen=True):
    """A document, the current object or None, and the object that the API server would store."""

    document: Document
    before: JSONObject | None
    after: JSONObject


async def dry_run(session: Session, documents: Sequence[Document], *, force: bool) -> list[DryRunResult]:
    """Apply documents as a dry run. Raise the error of the first document that the API server rejects."""
    applier = Applier(session, force=force)
    return [await applier.dry_run(document) for document in documents]


async def create_namespaces(session: Session, documents: Sequence[Document]) -> list[str]:
    """Create missing namespaces that documents require but do not contain. Return one line for each."""
    lines = []
    for name in await missing_namespaces(session, documents):
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await session.client.create(NAMESPACES, obj)
        except AlreadyExistsError:  # another client created it in the meantime
            continue
        lines.append(f"namespace/{name} created (used by the manifest, but not defined in it)")
    return lines


async def missing_namespaces(session: Session, documents: Sequence[Document]) -> list[str]:
    """Return the namespaces that documents require, do not contain, and that do not exist."""
    discovery = Discovery(session.client)
    brought = {
        document.object["metadata"].get("name") for document in documents if document.object["kind"] == "Namespace"
    }
    namespaces = {await _namespace_of(session, discovery, document): None for document in documents}
    lacking = (name for name in namespaces if name and name not in brought)
    return [name for name in lacking if await session.client.find(NAMESPACES, ObjectKey("", name)) is None]


async def _namespace_of(session: Session, discovery: Discovery, document: Document) -> str:
    own: str = document.object["metadata"].get("namespace") or ""
    try:
        resource = await discovery.resource_of(document.object)
    except UnknownKindError:  # a CRD in the same documents may define it
        return own
    return (own or session.namespace) if resource.namespaced else ""
