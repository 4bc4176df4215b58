"""Validates limits, names, addresses, and combinations in the manager configuration (contract 12.2).

Input: a decoded `Configuration`. Output: errors with paths, with the texts of the Go manager if it has one.
"""

from typing import Final

from kuberuntime.errors import ConfigError
from kuberuntime.objects import names
from kuberuntime.objects.duration import Range
from kuberuntime.objects.field import FieldError, invalid, not_supported, required_error
from kuberuntime.serving.bindaddresses import DISABLED, HIGHEST_PORT, parse_address
from leaderworkerset.capabilities.backoff import backoffsettings as settings
from leaderworkerset.capabilities.disruption import disruptionsettings as disruption
from leaderworkerset.capabilities.lostnodes.forcedeletion import GRACES
from leaderworkerset.core.gang.gangs import AUTO, NAMES
from leaderworkerset.manager.config import ciphersuites
from leaderworkerset.manager.config.configuration import (
    LOCK,
    TLS,
    TLS12,
    TLS13,
    Configuration,
    ConfigurationError,
    DisruptionBudgets,
    GangSchedulingManagement,
    GroupRestarts,
    InternalCertManagement,
    LeaderElection,
    Maintenance,
    PodAdmission,
    RecorderSettings,
)

GANG_PROVIDERS: Final = (*NAMES, AUTO)

NOT_IN_PATHS: Final = frozenset(" \t\n{}?#")
"""The characters that are invalid in the path of a probe, or that the router interprets as a pattern."""

JITTER: Final = 1.2
"""The maximum factor by which a leader election delay exceeds the retry period."""


TURNS: Final = Range(24)
"""The maximum duration for which a group can be evicted while other groups wait."""

EPISODE_AGES: Final = Range(90 * 24)
MOST_MEBIBYTES: Final = 256
"""The maximum age and size of recorded failures that are stored in the API server."""


def validate(configuration: Configuration) -> list[FieldError]:
    """Return all errors in the values, including leader election errors (R-CFG-1)."""
    return [
        *_certificate_errors(configuration.internal_cert_management),
        *_gang_errors(configuration.gang_scheduling_management),
        *_election_errors(configuration.leader_election),
        *_serving_errors(configuration),
        *_restart_errors(configuration.group_restarts),
        *_recorder_errors(configuration.recorder),
        *_disruption_errors(configuration.disruption_budgets),
        *_maintenance_errors(configuration.maintenance),
        *_admission_errors(configuration.pod_admission),
    ]


def check_tls(tls: TLS) -> None:
    """Raise an error for unsupported TLS settings (R-CFG-2)."""
    if tls.min_version not in {"", TLS12, TLS13}:
        raise ConfigurationError(f'invalid minVersion "{tls.min_version}". Please use {TLS12} or {TLS13}')
    if tls.min_version == TLS13 and tls.cipher_suites:
        raise ConfigurationError(f"cipher suites may not be specified when minVersion is '{TLS13}'")
    for name in tls.cipher_suites:
        if not ciphersuites.is_known(name):
            raise ConfigurationError(f"invalid cipher suites: Cipher suite {name} not supported or doesn't exist")


def _certificate_errors(certificates: InternalCertManagement) -> list[FieldError]:
    if not certificates.enable:
        return []
    path = "internalCertManagement"
    service, secret = certificates.webhook_service_name, certificates.webhook_secret_name
    return [invalid(f"{path}.webhookServiceName", service, failure) for failure in names.dns_1035_label(service)] + [
        invalid(f"{path}.webhookSecretName", secret, failure) for failure in names.dns_1123_subdomain(secret)
    ]


def _gang_errors(gang: GangSchedulingManagement | None) -> list[FieldError]:
    if gang is None:
        return []
    path, provider = "schedulerProvider", gang.scheduler_provider
    if not provider:
        return [required_error(path, "must be set when gang scheduling is enabled")]
    return [] if provider in GANG_PROVIDERS else [not_supported(path, provider, GANG_PROVIDERS)]


def _serving_errors(configuration: Configuration) -> list[FieldError]:
    """Return errors for ports, addresses and paths that prevent the start or the access to the manager."""
    port, health = configuration.webhook.port, configuration.health
    errors = [] if 0 < port <= HIGHEST_PORT else [invalid("webhook.port", port, f"must be from 1 to {HIGHEST_PORT}")]
    places = {
        "metrics.bindAddress": configuration.metrics.bind_address,
        "health.healthProbeBindAddress": health.health_probe_bind_address,
    }
    for path, address in places.items():
        if address in DISABLED:
            continue
        try:
            parse_address(address)
        except ConfigError:
            errors.append(invalid(path, address, "must be host:port, :port, or 0 to disable the server"))
    paths = {
        "readinessEndpointName": health.readiness_endpoint_name,
        "livenessEndpointName": health.liveness_endpoint_name,
    }
    errors += [
        invalid(f"health.{field}", path, "must be a path without spaces, braces, question marks and number signs")
        for field, path in paths.items()
        if set(path) & NOT_IN_PATHS
    ]
    if len({path.lstrip("/") for path in paths.values()}) == 1:
        errors.append(
            invalid("health.livenessEndpointName", health.liveness_endpoint_name, "must differ from the readiness path")
        )
    return errors


def _restart_errors(restarts: GroupRestarts | None) -> list[FieldError]:
    if restarts is None:
        return []
    path, first, longest = "groupRestarts", restarts.first_delay, restarts.longest_delay
    most, release = restarts.max_group_restarts, restarts.release_lost_pods_after
    failures = [
        (not settings.FIRST_DELAYS.contains(first), "firstDelay", f"{first:g}s", settings.FIRST_DELAYS),
        (not settings.LONGEST_DELAYS.contains(longest), "longestDelay", f"{longest:g}s", settings.LONGEST_DELAYS),
        (longest < first, "longestDelay", f"{longest:g}s", "at least firstDelay"),
        (
            not settings.RESETS.contains(restarts.reset_after),
            "resetAfter",
            f"{restarts.reset_after:g}s",
            settings.RESETS,
        ),
        (not 0 <= most <= settings.MOST_RESTARTS, "maxGroupRestarts", most, f"at most {settings.MOST_RESTARTS}"),
        (
            bool(release) and not GRACES.contains(release),
            "releaseLostPodsAfter",
            f"{release:g}s",
            GRACES,
        ),
    ]
    return [
        invalid(f"{path}.{field}", value, f"must be {allowed}") for wrong, field, value, allowed in failures if wrong
    ]


def _recorder_errors(recorder: RecorderSettings) -> list[FieldError]:
    age, size, share = recorder.keep_for, recorder.mebibytes, recorder.mebibytes_per_set
    failures = [
        (not EPISODE_AGES.contains(age), "keepFor", f"{age:g}s", str(EPISODE_AGES)),
        (not 1 <= size <= MOST_MEBIBYTES, "mebibytes", size, f"from 1 to {MOST_MEBIBYTES}"),
        (not 1 <= share <= max(size, 1), "mebibytesPerSet", share, "from 1 to the value of mebibytes"),
    ]
    return [
        invalid(f"recorder.{field}", value, f"must be {allowed}") for wrong, field, value, allowed in failures if wrong
    ]


def _disruption_errors(budgets: DisruptionBudgets) -> list[FieldError]:
    errors = []
    if not disruption.is_valid(budgets.budget):
        errors.append(invalid("disruptionBudgets.budget", budgets.budget, f"must be {disruption.ALLOWED}"))
    if not TURNS.contains(budgets.turn):
        errors.append(invalid("disruptionBudgets.turn", f"{budgets.turn:g}s", f"must be {TURNS}"))
    return errors


def _maintenance_errors(maintenance: Maintenance) -> list[FieldError]:
    taint = maintenance.taint
    return [invalid("maintenance.taint", taint, error) for error in names.label_key(taint)] if taint else []


def _admission_errors(admission: str) -> list[FieldError]:
    return [] if admission in tuple(PodAdmission) else [not_supported("podAdmission", admission, tuple(PodAdmission))]


def _election_errors(election: LeaderElection) -> list[FieldError]:
    if not election.leader_elect:
        return []
    path = "leaderElection"
    lease, renew, retry = election.lease_duration, election.renew_deadline, election.retry_period
    failures = [
        (lease < 1, "leaseDuration", lease, "must be at least one second"),
        (lease <= renew, "leaseDuration", lease, "must be greater than renewDeadline"),
        (renew <= retry * JITTER, "renewDeadline", renew, f"must be greater than retryPeriod*{JITTER}"),
        (retry <= 0, "retryPeriod", retry, "must be greater than zero"),
    ]
    errors = [
        invalid(f"{path}.{field}", f"{value:g}s", text) for is_invalid, field, value, text in failures if is_invalid
    ]
    # API servers reject leases with other names, so no manager would lead, although all would be ready.
    name = election.resource_name
    errors += [invalid(f"{path}.resourceName", name, failure) for failure in names.dns_1123_subdomain(name)]
    if election.resource_lock != LOCK:
        errors.append(not_supported(f"{path}.resourceLock", election.resource_lock, [LOCK]))
    return errors
