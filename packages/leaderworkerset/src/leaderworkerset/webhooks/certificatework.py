"""Asks a process that ends about certificates: cryptography takes 11 MiB, and the manager needs it for moments.

The process answers one line for each line (`certificateworker.py`), and ends after a few seconds without a question.
"""

import asyncio
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from kuberuntime.clock import Clock

PROGRAM: Final = "leaderworkerset.webhooks.certificateworker"

IDLE: Final = 5.0
"""Seconds without a question after which the process ends: the questions of a start come within one."""

LINE: Final = 4 * 2**20
"""The maximum bytes of an answer; a secret has at most 1 MiB."""


AUTHORITY_CERTIFICATE: Final = "ca.crt"
"""The key of the secret with the authorities that clients trust."""


class RotationStep(StrEnum):
    """The action that is due."""

    KEEP = "keep"
    RENEW_CERTIFICATE = "renew the serving certificate"
    RENEW_AUTHORITY = "renew the authority"
    DROP_AUTHORITIES = "trust authorities with an invalid serial number no longer"


class Rotate(Struct, frozen=True, tag=True):
    """Asks what is due for the data of a secret, whose certificate is for these host names (`Rotated`)."""

    data: Mapping[str, str]
    hosts: Sequence[str]
    now: datetime


class SelfSign(Struct, frozen=True, tag=True):
    """Asks for a certificate that is its own authority, with its key, as one PEM."""

    hosts: Sequence[str]
    now: datetime


class FindEnd(Struct, frozen=True, tag=True):
    """Asks when the first certificate of a PEM ends; None if only TLS reads its form."""

    chain: bytes


Question: TypeAlias = Rotate | SelfSign | FindEnd


class Rotated(Struct, frozen=True):
    """The step that is due, and the certificates after it: the data of the secret, and the served chain."""

    step: RotationStep
    data: Mapping[str, str]
    chain: bytes
    signer: bytes
    until: datetime
    due: datetime


Ask: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Answers a question; both are JSON on one line."""


class CertificateWork:
    """Answers questions about certificates, by default in a process."""

    def __init__(self, clock: Clock, ask: Ask | None = None) -> None:
        self._clock = clock
        self._process = WorkerProcess()
        self._ask: Ask = ask or self._process.ask

    async def rotate(self, data: Mapping[str, str], hosts: Sequence[str]) -> Rotated:
        """Return what is due for the data of a secret, after it was done."""
        return msgspec.json.decode(await self._answer(Rotate(data, hosts, self._clock.now())), type=Rotated)

    async def self_signed(self) -> bytes:
        """Return a certificate that no client verifies, valid for longer than this process runs, with its key as PEM."""
        question = SelfSign(("localhost", socket.gethostname()), self._clock.now())
        return msgspec.json.decode(await self._answer(question), type=bytes)

    async def find_end(self, chain: bytes) -> datetime | None:
        """Return when a certificate ends; None if only TLS reads its form."""
        return msgspec.json.decode(await self._answer(FindEnd(chain)), type=datetime | None)

    async def aclose(self) -> None:
        """End the process, if it runs, and wait for its exit."""
        await self._process.close()

    async def _answer(self, question: Question) -> bytes:
        return await self._ask(msgspec.json.encode(question))


class WorkerProcess:
    """Starts the process for a question unless it runs; raises `ChildProcessError` if it does not answer."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._ending: asyncio.TimerHandle | None = None

    async def ask(self, question: bytes) -> bytes:
        """Return the answer to a question."""
        async with self._turn:
            if self._ending is not None:
                self._ending.cancel()
            process = self._process = self._process or await _started()
            assert process.stdin is not None  # noqa: S101 - both are pipes
            assert process.stdout is not None  # noqa: S101
            try:
                process.stdin.write(question + b"\n")
                answer = await process.stdout.readline()
            except BaseException:  # a later question must not get the answer to this one
                self._end()
                raise
            if not answer.endswith(b"\n"):
                self._process = None
                raise ChildProcessError(f"the process for certificates exited with code {await process.wait()}")
            self._ending = asyncio.get_running_loop().call_later(IDLE, self._end)
            return answer

    async def close(self) -> None:
        """End the process, if it runs, and wait for its exit."""
        process = self._process
        self._end()
        if process is not None:
            await process.wait()

    def _end(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None


async def _started() -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", PROGRAM, stdin=PIPE, stdout=PIPE, limit=LINE
    )
