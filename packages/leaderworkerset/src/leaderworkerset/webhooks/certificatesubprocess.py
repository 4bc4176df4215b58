"""Performs certificate operations in a subprocess, because cryptography requires 11 MiB and is rarely used.

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
"""The time in seconds after which an idle process exits. All requests at startup arrive within one second."""

LINE: Final = 4 * 2**20
"""The maximum size of a response in bytes. A Secret has at most 1 MiB."""


AUTHORITY_CERTIFICATE: Final = "ca.crt"
"""The key of trusted CAs in the Secret."""


class RotationStep(StrEnum):
    """The required step of a certificate rotation."""

    KEEP = "keep"
    RENEW_CERTIFICATE = "renew the serving certificate"
    RENEW_AUTHORITY = "renew the CA"
    DROP_AUTHORITIES = "remove CAs with an invalid serial number"


class Rotate(Struct, frozen=True, tag=True):
    """Requests the next step for the data of a Secret with a certificate for these host names (`RotationResult`)."""

    data: Mapping[str, str]
    hosts: Sequence[str]
    now: datetime


class SelfSign(Struct, frozen=True, tag=True):
    """Requests a self-signed certificate and key in one PEM document."""

    hosts: Sequence[str]
    now: datetime


class FindEnd(Struct, frozen=True, tag=True):
    """Requests the expiration time of the first certificate in PEM data, or None if only OpenSSL can parse it."""

    chain: bytes


Question: TypeAlias = Rotate | SelfSign | FindEnd


class RotationResult(Struct, frozen=True):
    """The next step, and the resulting Secret data and serving chain."""

    step: RotationStep
    data: Mapping[str, str]
    chain: bytes
    signer: bytes
    until: datetime
    due: datetime


Ask: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Responds to a request. The request and the response are each one line of JSON."""


class CertificateSubprocess:
    """Processes certificate requests, by default in a subprocess."""

    def __init__(self, clock: Clock, ask: Ask | None = None) -> None:
        self._clock = clock
        self._process = WorkerProcess()
        self._ask: Ask = ask or self._process.ask

    async def rotate(self, data: Mapping[str, str], hosts: Sequence[str]) -> RotationResult:
        """Perform the next step for the data of a Secret, and return the result."""
        return msgspec.json.decode(await self._request(Rotate(data, hosts, self._clock.now())), type=RotationResult)

    async def self_signed(self) -> bytes:
        """Return a self-signed certificate and its key in PEM format.

        It is valid for longer than this process runs.
        """
        question = SelfSign(("localhost", socket.gethostname()), self._clock.now())
        return msgspec.json.decode(await self._request(question), type=bytes)

    async def find_expiration(self, chain: bytes) -> datetime | None:
        """Return the expiration time of a certificate, or None if only OpenSSL can parse it."""
        return msgspec.json.decode(await self._request(FindEnd(chain)), type=datetime | None)

    async def aclose(self) -> None:
        """Stop the process if it is running, and wait for its exit."""
        await self._process.close()

    async def _request(self, question: Question) -> bytes:
        return await self._ask(msgspec.json.encode(question))


class WorkerProcess:
    """Starts the process for a request if necessary. Raises `ChildProcessError` if it does not respond."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._ending: asyncio.TimerHandle | None = None

    async def ask(self, question: bytes) -> bytes:
        """Return the response to a request."""
        async with self._lock:
            if self._ending is not None:
                self._ending.cancel()
            process = self._process = self._process or await _start_process()
            assert process.stdin is not None  # noqa: S101 - both are pipes
            assert process.stdout is not None  # noqa: S101
            try:
                process.stdin.write(question + b"\n")
                response = await process.stdout.readline()
            except BaseException:  # a later request must not receive this response
                self._stop()
                raise
            if not response.endswith(b"\n"):
                self._process = None
                raise ChildProcessError(f"the certificate process exited with code {await process.wait()}")
            self._ending = asyncio.get_running_loop().call_later(IDLE, self._stop)
            return response

    async def close(self) -> None:
        """Stop the process if it is running, and wait for its exit."""
        process = self._process
        self._stop()
        if process is not None:
            await process.wait()

    def _stop(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None


async def _start_process() -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", PROGRAM, stdin=PIPE, stdout=PIPE, limit=LINE
    )
