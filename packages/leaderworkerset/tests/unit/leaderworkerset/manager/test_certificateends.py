"""Tests the metric for the expiry of certificates."""

from datetime import UTC, datetime, timedelta

from testkit.virtualtime import VirtualClock
from tests.certificates import answer_here

from kuberuntime.serving import serving
from kuberuntime.serving.metrics import Metrics
from leaderworkerset.manager.metricsserver import NAME, CertificateExpirations
from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.certificatesubprocess import CertificateSubprocess

NOW = datetime(2026, 1, 2, tzinfo=UTC)


WORK = CertificateSubprocess(VirtualClock(), answer_here)


async def test_metric_has_the_expiry_of_the_current_certificate() -> None:
    """A renewed certificate replaces the metric of the previous certificate."""
    metrics = Metrics()
    ends = CertificateExpirations(metrics, WORK)
    authority = certificates.create_authority(NOW)
    for days in (1, 5):
        pair = certificates.issue(authority, ["web"], NOW, validity=timedelta(days=days))
        await ends.record_certificate("webhooks", pair.chain)
        (line,) = [one for one in metrics.render().decode().splitlines() if one.startswith(f"{NAME}{{")]
        assert line.startswith(f'{NAME}{{server="webhooks"}} ')
        assert datetime.fromtimestamp(float(line.split()[-1]), UTC) == NOW + timedelta(days=days)


async def test_unparsable_certificate_does_not_stop_the_manager() -> None:
    """OpenSSL serves such a certificate, but the error would stop the manager when the files are replaced."""
    metrics = Metrics()
    pair = certificates.issue(certificates.create_authority(NOW), ["web"], NOW)
    chain = pair.chain.replace(b"CERTIFICATE", b"TRUSTED CERTIFICATE")
    serving.server_context(chain)
    await CertificateExpirations(metrics, WORK).record_certificate("webhooks", chain)
    assert f'{NAME}{{server="webhooks"}} NaN' in metrics.render().decode()
