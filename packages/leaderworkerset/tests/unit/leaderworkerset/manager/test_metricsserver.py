"""Tests the certificate of the metrics server."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from testkit.virtualtime import VirtualClock, run
from tests.certificates import answer_here

from kuberuntime.serving.certfiles import INTERVAL, CertificateFiles
from kuberuntime.serving.metrics import Metrics
from leaderworkerset.manager import metricsserver
from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.certificatesubprocess import CertificateSubprocess

PAIR = certificates.issue(certificates.create_authority(datetime.now(UTC)), ["metrics"], datetime.now(UTC))


def test_certificate_mounted_later_is_used_without_a_restart(tmp_path: Path) -> None:
    """The Secret with the certificate is optional, and may be created after its pod starts (R-OP-11)."""

    async def scenario() -> tuple[list[str], list[str]]:
        metrics = Metrics()
        async with metricsserver.serving_tls_context(
            CertificateFiles(tmp_path, metrics), CertificateSubprocess(VirtualClock(), answer_here)
        ):
            await asyncio.sleep(10 * INTERVAL)
            before = readings(metrics)
            (tmp_path / "tls.crt").write_bytes(PAIR.certificate)
            (tmp_path / "tls.key").write_bytes(PAIR.key)
            await asyncio.sleep(INTERVAL)
            return before, readings(metrics)

    def readings(metrics: Metrics) -> list[str]:
        lines = metrics.render().decode().splitlines()
        return sorted(line for line in lines if line.startswith("certwatcher_") and "_total" in line)

    before, after = run(scenario())
    errors, read = "certwatcher_read_certificate_errors_total", "certwatcher_read_certificate_total"
    assert before == [f"{errors} 0.0", f"{read} 0.0"]
    assert after == [f"{errors} 0.0", f"{read} 1.0"]
