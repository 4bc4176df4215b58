"""Sends one sequence of requests to both servers, and reports the differences between their responses."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import zip_longest
from typing import TypeAlias

from tests.conformance.difference import ABSENT, Difference, parts
from tests.conformance.transcript import Entry, Session, normalized

from kuberuntime.client.transport import Request, Transport

Sequence: TypeAlias = Callable[[Session], Awaitable[None]]

LIST_ITEM = re.compile(r"^(\.items)?\[\d+\](\.object)?|^\.items\[\d+\]")


def answers(runner: asyncio.Runner, transport: Transport, namespace: str, sequence: Sequence) -> list[Entry]:
    """Send the sequence to a server in a separate namespace. Return the responses without the namespace name."""
    return normalized(runner.run(play(transport, namespace, sequence)))


async def play(transport: Transport, namespace: str, sequence: Sequence) -> list[Entry]:
    """Send a sequence to one server."""
    made = b'{"apiVersion":"v1","kind":"%s","metadata":{"name":"%s"}}'
    headers = {"content-type": "application/json"}
    for path, body in (
        ("/api/v1/namespaces", made % (b"Namespace", namespace.encode())),
        (f"/api/v1/namespaces/{namespace}/serviceaccounts", made % (b"ServiceAccount", b"default")),
    ):
        answer = await transport.request(Request("POST", path, (), headers, body))
        assert answer.status in {201, 409}, answer.body
    session = Session(transport, namespace)
    await sequence(session)
    return session.entries


def compare(embedded: Iterable[Entry], real: Iterable[Entry]) -> Iterator[Difference]:
    """Yield the differences between two transcripts. A repeated difference is yielded once."""
    told: set[str] = set()
    for ours, theirs in zip_longest(embedded, real):
        if ours is None or theirs is None or ours.request != theirs.request:
            words = [one.request if one else ABSENT for one in (ours, theirs)]
            yield Difference("the sequence itself", "request", *words)
            return
        for found in _of_answers(ours, theirs):
            substance = LIST_ITEM.sub("", found.path) + repr((found.embedded, found.real))
            if substance not in told:
                told.add(substance)
                yield found


def _of_answers(ours: Entry, theirs: Entry) -> Iterator[Difference]:
    if ours.status != theirs.status:
        yield Difference(ours.request, "answer", (ours.status, ours.body), (theirs.status, theirs.body))
        return
    if ours.warnings != theirs.warnings:
        yield Difference(ours.request, "warnings", ours.warnings, theirs.warnings)
    yield from (Difference(ours.request, *found) for found in parts("", ours.body, theirs.body))
