"""Tests that requests share the certificate process, that it exits when idle, and its failures."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from subprocess import PIPE

import msgspec
import pytest

from kuberuntime.clock import SystemClock
from kuberuntime.serving import serving
from leaderworkerset.webhooks import certificates, certificatesubprocess
from leaderworkerset.webhooks.certificatesubprocess import (
    PROGRAM,
    CertificateSubprocess,
    RotationStep,
    SelfSign,
    WorkerProcess,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def worker() -> AbstractAsyncContextManager[WorkerProcess]:
    return ended()


@asynccontextmanager
async def ended() -> AsyncIterator[WorkerProcess]:
    """Terminate the certificate process after a test."""
    worker = WorkerProcess()
    try:
        yield worker
    finally:
        await worker.close()


NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOSTS = ("web",)


async def test_self_signed_certificate_is_served(worker: WorkerProcess) -> None:
    work = CertificateSubprocess(SystemClock(), worker.ask)
    chain = await work.self_signed()
    serving.server_context(chain)
    assert await work.find_expiration(chain) == certificates.expires_at(chain)


async def test_rotated_secret_is_kept_afterwards(worker: WorkerProcess) -> None:
    work = CertificateSubprocess(SystemClock(), worker.ask)
    made = await work.rotate({"other": "eA=="}, HOSTS)
    kept = await work.rotate(made.data, HOSTS)
    assert (made.step, kept.step) == (RotationStep.RENEW_AUTHORITY, RotationStep.KEEP)
    assert kept.data == made.data
    assert made.data["other"] == "eA=="
    assert kept.until == certificates.expires_at(kept.chain)
    assert kept.due < kept.until


async def test_questions_share_a_process_that_ends_when_idle(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = CertificateSubprocess(SystemClock(), worker.ask)
    await work.find_expiration(b"")
    process = worker._process
    assert process is not None
    monkeypatch.setattr(certificatesubprocess, "IDLE", 0.0)
    await work.find_expiration(b"")
    assert await process.wait() == 0
    assert worker._process is None
    assert await work.find_expiration(authority()) == NOW + timedelta(days=1)


async def test_cancelled_question_does_not_answer_the_next_one(worker: WorkerProcess) -> None:
    work = CertificateSubprocess(SystemClock(), worker.ask)
    question = asyncio.create_task(work.self_signed())
    while worker._process is None:  # noqa: ASYNC110 - nothing reports the start
        await asyncio.sleep(0)
    process = worker._process
    question.cancel()
    assert await work.find_expiration(authority()) == NOW + timedelta(days=1)
    assert await process.wait() == 0


async def test_killed_process_is_an_error_and_is_started_again(worker: WorkerProcess) -> None:
    work = CertificateSubprocess(SystemClock(), worker.ask)
    await work.find_expiration(b"")
    assert worker._process is not None
    worker._process.kill()
    with pytest.raises(ChildProcessError, match="exited with code -9"):
        await work.find_expiration(b"")
    assert await work.find_expiration(authority()) == NOW + timedelta(days=1)


def authority() -> bytes:
    return certificates.create_authority(NOW, validity=timedelta(days=1)).certificate


def test_process_exits_quietly_when_nobody_reads_its_answer() -> None:
    """The manager was killed in the meantime."""
    question = msgspec.json.encode(SelfSign(HOSTS, NOW)) + b"\n"
    process = subprocess.Popen([sys.executable, "-m", PROGRAM], stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.write(question)
    process.stdin.close()
    assert (process.stderr.read(), process.wait()) == (b"", 0)
    process.stderr.close()
