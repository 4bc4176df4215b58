"""The metric of the end of certificates."""

from datetime import UTC, datetime, timedelta

from kuberuntime.serving import serving
from kuberuntime.serving.metrics import Metrics
from leaderworkerset.manager.metricsserver import NAME, CertificateEnds
from leaderworkerset.webhooks import certificates

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_metric_has_the_end_of_the_current_certificate() -> None:
    """A renewed certificate replaces the previous one."""
    metrics = Metrics()
    ends = CertificateEnds(metrics)
    authority = certificates.create_authority(NOW)
    for days in (1, 5):
        pair = certificates.issue(authority, ["web"], NOW, validity=timedelta(days=days))
        ends.note("webhooks", pair.chain)
        (line,) = [one for one in metrics.render().decode().splitlines() if one.startswith(f"{NAME}{{")]
        assert line.startswith(f'{NAME}{{server="webhooks"}} ')
        assert datetime.fromtimestamp(float(line.split()[-1]), UTC) == NOW + timedelta(days=days)


def test_unparsable_certificate_does_not_end_the_manager() -> None:
    """OpenSSL serves it; the error would end the manager when its files are replaced."""
    metrics = Metrics()
    pair = certificates.issue(certificates.create_authority(NOW), ["web"], NOW)
    chain = pair.chain.replace(b"CERTIFICATE", b"TRUSTED CERTIFICATE")
    serving.server_context(chain)
    CertificateEnds(metrics).note("webhooks", chain)
    assert f'{NAME}{{server="webhooks"}} NaN' in metrics.render().decode()
