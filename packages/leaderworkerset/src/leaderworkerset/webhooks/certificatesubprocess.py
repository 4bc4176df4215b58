"""Requests certificate operations from a subprocess, because cryptography uses 11 MiB and is rarely needed.

The process responds to each line with one line (`certificateworker.py`), and exits if it is idle for a few seconds.
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
"""The seconds after which an idle process exits. The requests during a start arrive within one second."""

LINE: Final = 4 * 2**20
"""The maximum bytes of a response. A Secret has at most 1 MiB."""


AUTHORITY_CERTIFICATE: Final = "ca.crt"
"""The key in the Secret for the CAs that clients trust."""


class RotationStep(StrEnum):
    """The action that is due."""

    KEEP = "keep"
    RENEW_CERTIFICATE = "renew the serving certificate"
    RENEW_AUTHORITY = "renew the authority"
    DROP_AUTHORITIES = "trust authorities with an invalid serial number no longer"


class Rotate(Struct, frozen=True, tag=True):
    """Requests the step that is due for the data of a Secret with a certificate for these host names (`RotationResult`)."""

    data: Mapping[str, str]
    hosts: Sequence[str]
    now: datetime


class SelfSign(Struct, frozen=True, tag=True):
    """Requests a self-signed certificate with its key as one PEM."""

    hosts: Sequence[str]
    now: datetime


class FindEnd(Struct, frozen=True, tag=True):
    """Requests when the first certificate in a PEM expires, or None if only the TLS library can read it."""

    chain: bytes


Question: TypeAlias = Rotate | SelfSign | FindEnd


class RotationResult(Struct, frozen=True):
    """The step that is due, and the resulting certificates: the data of the Secret, and the served chain."""

    step: RotationStep
    data: Mapping[str, str]
    chain: bytes
    signer: bytes
    until: datetime
    due: datetime


Ask: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Responds to a request. Both are JSON on one line."""


class CertificateSubprocess:
    """Processes certificate requests, by default in a subprocess."""

    def __init__(self, clock: Clock, ask: Ask | None = None) -> None:
        self._clock = clock
        self._process = WorkerProcess()
        self._ask: Ask = ask or self._process.ask

    async def rotate(self, data: Mapping[str, str], hosts: Sequence[str]) -> RotationResult:
        """Perform the step that is due for the data of a Secret, and return the result."""
        return msgspec.json.decode(await self._answer(Rotate(data, hosts, self._clock.now())), type=RotationResult)

    async def self_signed(self) -> bytes:
        """Return a certificate that clients do not verify, valid for longer than this process, with its key as PEM."""
        question = SelfSign(("localhost", socket.gethostname()), self._clock.now())
        return msgspec.json.decode(await self._answer(question), type=bytes)

    async def find_end(self, chain: bytes) -> datetime | None:
        """Return when a certificate expires, or None if only the TLS library can read it."""
        return msgspec.json.decode(await self._answer(FindEnd(chain)), type=datetime | None)

    async def aclose(self) -> None:
        """Stop the process if it is running, and wait until it exits."""
        await self._process.close()

    async def _answer(self, question: Question) -> bytes:
        return await self._ask(msgspec.json.encode(question))


class WorkerProcess:
    """Starts the process for a request if it is not running. Raises `ChildProcessError` if it does not respond."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._ending: asyncio.TimerHandle | None = None

    async def ask(self, question: bytes) -> bytes:
        """Return the response to a request."""
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
        """Stop the process if it is running, and wait until it exits."""
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
