"""The process for certificates: questions share it, it ends without questions, and its failure is an error."""

from datetime import UTC, datetime, timedelta

import pytest

from kuberuntime.clock import SystemClock
from kuberuntime.serving import serving
from leaderworkerset.webhooks import certificates, certificatework
from leaderworkerset.webhooks.certificatework import CertificateWork, RotationStep, WorkerProcess

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOSTS = ("web",)


async def test_a_self_signed_certificate_is_served() -> None:
    work = CertificateWork(SystemClock())
    chain = await work.self_signed()
    serving.server_context(chain)
    assert await work.find_end(chain) == certificates.expires_at(chain)


async def test_a_rotated_secret_is_kept_afterwards() -> None:
    work = CertificateWork(SystemClock())
    made = await work.rotate({"other": "eA=="}, HOSTS)
    kept = await work.rotate(made.data, HOSTS)
    assert (made.step, kept.step) == (RotationStep.RENEW_AUTHORITY, RotationStep.KEEP)
    assert kept.data == made.data
    assert made.data["other"] == "eA=="
    assert kept.until == certificates.expires_at(kept.chain)
    assert kept.due < kept.until


async def test_questions_share_a_process_that_ends_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = WorkerProcess()
    work = CertificateWork(SystemClock(), worker.ask)
    await work.find_end(b"")
    process = worker._process
    assert process is not None
    monkeypatch.setattr(certificatework, "IDLE", 0.0)
    await work.find_end(b"")
    assert await process.wait() == 0
    assert worker._process is None
    assert await work.find_end(authority()) == NOW + timedelta(days=1)


async def test_a_killed_process_is_an_error_and_is_started_again() -> None:
    worker = WorkerProcess()
    work = CertificateWork(SystemClock(), worker.ask)
    await work.find_end(b"")
    assert worker._process is not None
    worker._process.kill()
    with pytest.raises(ChildProcessError, match="exited with code -9"):
        await work.find_end(b"")
    assert await work.find_end(authority()) == NOW + timedelta(days=1)


def authority() -> bytes:
    return certificates.create_authority(NOW, validity=timedelta(days=1)).certificate
