"""Whether a configuration of the manager conflicts with its installed objects: ports, paths and names in both."""

from kuberuntime.objects.field import FieldError, not_supported
from leaderworkerset.api.metadata import LEASE
from leaderworkerset.install.workload import CERTIFICATES_PATH, METRICS_PORT, PROBE_PORT, WEBHOOK_PORT
from leaderworkerset.manager.config.configuration import Configuration
from leaderworkerset.webhooks.permissions import SECRET_NAME, SERVICE_NAME


def misfits(configuration: Configuration) -> list[FieldError]:
    """Return the values with which the installed objects could not reach the manager."""
    certificates, health = configuration.internal_cert_management, configuration.health
    rules: tuple[tuple[str, str | int, tuple[str | int, ...]], ...] = (
        ("webhook.port", configuration.webhook.port, (WEBHOOK_PORT,)),
        ("webhook.certDir", configuration.webhook.cert_dir, (CERTIFICATES_PATH,)),
        ("metrics.bindAddress", configuration.metrics.bind_address, (f":{METRICS_PORT}", "0")),
        ("health.healthProbeBindAddress", health.health_probe_bind_address, (f":{PROBE_PORT}",)),
        ("health.livenessEndpointName", health.liveness_endpoint_name, ("/healthz",)),
        ("health.readinessEndpointName", health.readiness_endpoint_name, ("/readyz",)),
        ("leaderElection.resourceName", configuration.leader_election.resource_name, (LEASE,)),
        ("internalCertManagement.webhookServiceName", certificates.webhook_service_name, (SERVICE_NAME,)),
        ("internalCertManagement.webhookSecretName", certificates.webhook_secret_name, (SECRET_NAME,)),
    )
    return [not_supported(path, value, map(str, fitting)) for path, value, fitting in rules if value not in fitting]
