"""The manager's configuration file: `config.lws.x-k8s.io/v1`, or `v1alpha1`, kind `Configuration` (contract 12.2, N-CFG-3).

In: a document as a YAML reader returns it. Out: a `Configuration` with all defaults, or a `ConfigurationError`, with
the text of the Go manager if that has one. Decoding is strict: a field that does not exist is an error. As in Go, null
and the empty value mean the default.
"""

from datetime import timedelta
from types import UnionType
from typing import Any, Final, TypeAlias, get_args

import msgspec

from kuberuntime.errors import ConfigError
from kuberuntime.objects import duration, names
from kuberuntime.objects.duration import Duration
from kuberuntime.objects.field import FieldError, invalid, not_supported, required
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.serving.bindaddresses import DISABLED, HIGHEST_PORT, parse_address
from leaderworkerset.api.metadata import LEASE
from leaderworkerset.core.disruption import disruptionsettings as disruption
from leaderworkerset.core.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.core.gang.gangs import AUTO, NAMES
from leaderworkerset.core.maintenance.maintenancesettings import MaintenanceSettings
from leaderworkerset.core.restarts import settings
from leaderworkerset.core.restarts.settings import RestartSettings
from leaderworkerset.manager.config import ciphersuites

API_VERSION: Final = "config.lws.x-k8s.io/v1"
DEPRECATED: Final = "config.lws.x-k8s.io/v1alpha1"
"""The version of the file before, with the same fields."""

KIND: Final = "Configuration"

TLS12: Final = "VersionTLS12"
TLS13: Final = "VersionTLS13"
GANG_PROVIDERS: Final = (*NAMES, AUTO)
LOCK: Final = "leases"

NOT_IN_PATHS: Final = frozenset(" \t\n{}?#")
"""Characters that no request to a probe has in its path, or that the router takes for a pattern."""

JITTER: Final = 1.2
"""The maximum factor by which a wait of leader election exceeds the retry period."""


EPISODE_AGES: Final = settings.Range(90 * 24)
TURNS: Final = settings.Range(24)
"""How long a group may be evicted while others wait for their turn."""

MOST_MEBIBYTES: Final = 256
"""How long, and how much, recorded failures may be kept: they are in the store of the API server."""


class ConfigurationError(ValueError):
    """A configuration that is invalid; the text names the field and the value."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all sections: field names in camel case."""


class Webhook(_Section, frozen=True, kw_only=True):
    """The address and certificate directory of the webhook server."""

    port: int = 9443
    host: str = ""
    cert_dir: str = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - the directory that manifests mount


class Metrics(_Section, frozen=True, kw_only=True):
    """The address of the metrics server; "0" disables it."""

    bind_address: str = ":8443"


class Health(_Section, frozen=True, kw_only=True):
    """The address and paths of the probes."""

    health_probe_bind_address: str = ":8081"
    readiness_endpoint_name: str = "/readyz"
    liveness_endpoint_name: str = "/healthz"


class LeaderElection(_Section, frozen=True, kw_only=True):
    """The settings of leader election; `resource_namespace` is accepted and overridden (R-MGR-3)."""

    leader_elect: bool = True
    lease_duration: Duration = Duration(15)
    renew_deadline: Duration = Duration(10)
    retry_period: Duration = Duration(2)
    resource_lock: str = LOCK
    resource_name: str = LEASE
    resource_namespace: str = ""


class InternalCertManagement(_Section, frozen=True, kw_only=True):
    """Whether the manager creates its webhooks' certificate itself, for which service, and in which secret."""

    enable: bool = True
    webhook_service_name: str = "lws-webhook-service"
    webhook_secret_name: str = "lws-webhook-server-cert"  # noqa: S105 - a name


class GangSchedulingManagement(_Section, frozen=True, kw_only=True):
    """The gang scheduler: the name of a provider, or `auto`."""

    scheduler_provider: str = ""


class ClientConnection(_Section, frozen=True, kw_only=True):
    """The limits of the manager's requests per second: `qps` sustained, `burst` at once; negative: no limit."""

    qps: float = 500.0
    burst: int = 500


class GroupRestarts(_Section, frozen=True, kw_only=True):
    """How groups that fail are recreated; a section that the Go manager does not have, and refuses.

    `max_group_restarts` of 0 means no limit; `release_lost_pods_after` of 0 means to wait for lost pods.
    """

    backoff: bool = True
    first_delay: Duration = Duration(10)
    longest_delay: Duration = Duration(300)
    reset_after: Duration = Duration(600)
    max_group_restarts: int = 0
    release_lost_pods_after: Duration = Duration(0)


class RecorderSettings(_Section, frozen=True, kw_only=True):
    """Whether failures of groups are recorded in ConfigMaps, how much and for how long (docs/adr/0019).

    A section that the Go manager does not have, and refuses.
    """

    enable: bool = False
    keep_for: Duration = Duration(7 * 24 * 3600)
    mebibytes: int = 8
    mebibytes_per_set: int = 1


class DisruptionBudgets(_Section, frozen=True, kw_only=True):
    """Whether groups get disruption budgets, and which number those without annotation (docs/adr/0022).

    A section that the Go manager does not have, and refuses.
    """

    enable: bool = False
    budget: str = disruption.OFF
    watch_nodes: bool = True
    turn: Duration = Duration(60)


class Maintenance(_Section, frozen=True, kw_only=True):
    """Whether groups are moved off nodes that are closed, which taint closes one besides, and the default (docs/adr/0023).

    A section that the Go manager does not have, and refuses.
    """

    enable: bool = False
    taint: str = ""
    move_by_default: bool = False


class TLS(_Section, frozen=True, kw_only=True):
    """The TLS settings of the metrics and webhook servers."""

    min_version: str = ""
    cipher_suites: tuple[str, ...] = ()


class FeatureGates(_Section, frozen=True, kw_only=True):
    """The features that are on or off by their gate; another name is an unknown field (N-CFG-1)."""

    workload_aware_scheduling: bool = msgspec.field(default=False, name="WorkloadAwareScheduling")


class Configuration(_Section, frozen=True, kw_only=True):
    """The whole file."""

    api_version: str = API_VERSION
    kind: str = KIND
    webhook: Webhook = Webhook()
    metrics: Metrics = Metrics()
    health: Health = Health()
    leader_election: LeaderElection = LeaderElection()
    internal_cert_management: InternalCertManagement = InternalCertManagement()
    gang_scheduling_management: GangSchedulingManagement | None = None
    client_connection: ClientConnection = ClientConnection()
    tls: TLS = TLS()
    group_restarts: GroupRestarts | None = None
    recorder: RecorderSettings = RecorderSettings()
    disruption_budgets: DisruptionBudgets = DisruptionBudgets()
    maintenance: Maintenance = Maintenance()
    feature_gates: FeatureGates = FeatureGates()

    @property
    def restarts(self) -> RestartSettings:
        """Return how groups that fail are recreated."""
        section = self.group_restarts or GroupRestarts()
        return RestartSettings(
            backs_off=section.backoff,
            first_delay=timedelta(seconds=section.first_delay),
            longest_delay=timedelta(seconds=section.longest_delay),
            reset_after=timedelta(seconds=section.reset_after),
            max_restarts=section.max_group_restarts or None,
            release_after=timedelta(seconds=section.release_lost_pods_after) or None,
        )

    @property
    def disruption(self) -> DisruptionSettings | None:
        """Return how groups are protected against evictions, None if they are not."""
        section = self.disruption_budgets
        if not section.enable:
            return None
        return DisruptionSettings(
            budget=section.budget, watches_nodes=section.watch_nodes, turn=timedelta(seconds=section.turn)
        )

    @property
    def moving(self) -> MaintenanceSettings | None:
        """Return how groups are moved off closed nodes, None if they are not."""
        section = self.maintenance
        return MaintenanceSettings(section.taint, section.move_by_default) if section.enable else None

    @property
    def gang_provider(self) -> str:
        """Return the provider of gang scheduling, empty if there is none."""
        return "" if self.gang_scheduling_management is None else self.gang_scheduling_management.scheduler_provider


Sections: TypeAlias = type[msgspec.Struct]


def decode(document: JSON) -> Configuration:
    """Read a document strictly; every unknown field is named."""
    if not isinstance(document, dict):
        raise ConfigurationError(f"expected an object with apiVersion {API_VERSION} and kind {KIND}")
    found = (document.get("apiVersion"), document.get("kind"))
    if found not in ((API_VERSION, KIND), (DEPRECATED, KIND)):
        raise ConfigurationError(
            f'no kind "{found[1]}" is registered for version "{found[0]}": expected {KIND} of {API_VERSION}'
        )
    unknown = _unknown_fields(document, Configuration, "")
    if unknown:
        texts = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise ConfigurationError(f"strict decoding error: {texts}")
    try:
        return msgspec.convert(_without_empty(document), Configuration, dec_hook=_decode_duration)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"strict decoding error: {_plain(error)}") from error


def validate(configuration: Configuration) -> list[FieldError]:
    """Return all errors of the values, also of leader election (R-CFG-1)."""
    return [
        *_certificate_errors(configuration.internal_cert_management),
        *_gang_errors(configuration.gang_scheduling_management),
        *_election_errors(configuration.leader_election),
        *_serving_errors(configuration),
        *_restart_errors(configuration.group_restarts),
        *_recorder_errors(configuration.recorder),
        *_disruption_errors(configuration.disruption_budgets),
        *_maintenance_errors(configuration.maintenance),
    ]


def check_tls(tls: TLS) -> None:
    """Raise for TLS settings that are not supported (R-CFG-2)."""
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
        return [required(path, "must be set when gang scheduling is enabled")]
    return [] if provider in GANG_PROVIDERS else [not_supported(path, provider, GANG_PROVIDERS)]


def _serving_errors(configuration: Configuration) -> list[FieldError]:
    """Return errors of ports, addresses and paths: with them a manager would end, or serve where nobody asks."""
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
            errors.append(invalid(path, address, "must be host:port, :port, or 0 to serve nothing"))
    paths = {
        "readinessEndpointName": health.readiness_endpoint_name,
        "livenessEndpointName": health.liveness_endpoint_name,
    }
    errors += [
        invalid(f"health.{field}", path, "must be a path without blanks, braces, ? and #")
        for field, path in paths.items()
        if set(path) & NOT_IN_PATHS
    ]
    if len({path.lstrip("/") for path in paths.values()}) == 1:
        errors.append(
            invalid("health.livenessEndpointName", health.liveness_endpoint_name, "must not be that of readiness")
        )
    return errors


def _restart_errors(restarts: GroupRestarts | None) -> list[FieldError]:
    if restarts is None:
        return []
    path, first, longest = "groupRestarts", restarts.first_delay, restarts.longest_delay
    most, release = restarts.max_group_restarts, restarts.release_lost_pods_after
    failures = [
        (not settings.FIRST_DELAYS.holds(first), "firstDelay", f"{first:g}s", settings.FIRST_DELAYS),
        (not settings.LONGEST_DELAYS.holds(longest), "longestDelay", f"{longest:g}s", settings.LONGEST_DELAYS),
        (longest < first, "longestDelay", f"{longest:g}s", "not less than firstDelay"),
        (not settings.RESETS.holds(restarts.reset_after), "resetAfter", f"{restarts.reset_after:g}s", settings.RESETS),
        (not 0 <= most <= settings.MOST_RESTARTS, "maxGroupRestarts", most, f"at most {settings.MOST_RESTARTS}"),
        (
            bool(release) and not settings.RELEASES.holds(release),
            "releaseLostPodsAfter",
            f"{release:g}s",
            settings.RELEASES,
        ),
    ]
    return [
        invalid(f"{path}.{field}", value, f"must be {allowed}") for wrong, field, value, allowed in failures if wrong
    ]


def _recorder_errors(recorder: RecorderSettings) -> list[FieldError]:
    kept, size, share = recorder.keep_for, recorder.mebibytes, recorder.mebibytes_per_set
    failures = [
        (not EPISODE_AGES.holds(kept), "keepFor", f"{kept:g}s", str(EPISODE_AGES)),
        (not 1 <= size <= MOST_MEBIBYTES, "mebibytes", size, f"from 1 to {MOST_MEBIBYTES}"),
        (not 1 <= share <= max(size, 1), "mebibytesPerSet", share, "from 1 to mebibytes"),
    ]
    return [
        invalid(f"recorder.{field}", value, f"must be {allowed}") for wrong, field, value, allowed in failures if wrong
    ]


def _disruption_errors(budgets: DisruptionBudgets) -> list[FieldError]:
    errors = []
    if not disruption.is_valid(budgets.budget):
        errors.append(invalid("disruptionBudgets.budget", budgets.budget, f"must be {disruption.ALLOWED}"))
    if not TURNS.holds(budgets.turn):
        errors.append(invalid("disruptionBudgets.turn", f"{budgets.turn:g}s", f"must be {TURNS}"))
    return errors


def _maintenance_errors(maintenance: Maintenance) -> list[FieldError]:
    taint = maintenance.taint
    return [invalid("maintenance.taint", taint, error) for error in names.label_key(taint)] if taint else []


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
    # No API server stores a lease of another name: no manager would lead, and all would be ready.
    name = election.resource_name
    errors += [invalid(f"{path}.resourceName", name, failure) for failure in names.dns_1123_subdomain(name)]
    if election.resource_lock != LOCK:
        errors.append(not_supported(f"{path}.resourceLock", election.resource_lock, [LOCK]))
    return errors


def _unknown_fields(document: JSONObject, section: Sections, path: str) -> list[str]:
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(section)}
    unknown: list[str] = []
    for name, value in document.items():
        if name not in fields:
            unknown.append(f"{path}{name}")
        elif isinstance(value, dict) and (inner := _section_of(fields[name])) is not None:
            unknown += _unknown_fields(value, inner, f"{path}{name}.")
    return unknown


def _section_of(kind: Any) -> Sections | None:
    candidates = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return next((one for one in candidates if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)


def _without_empty(value: JSON) -> JSON:
    """Remove null and empty values, which mean the default; so do numbers of zero, except in text or lists."""
    if not isinstance(value, dict):
        return value
    kept = {name: _without_empty(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner is not None and not _is_zero(inner)}


def _is_zero(value: JSON) -> bool:
    return value in ("", "0s") or (value == 0 and not isinstance(value, bool))


def _decode_duration(kind: type, value: JSON) -> Duration:
    if kind is not Duration or not isinstance(value, str):
        raise ValueError(f"expected a duration such as 15s, got {value!r}")
    return duration.parse(value)


def _plain(error: msgspec.ValidationError) -> str:
    """Reorder msgspec's `Expected X, got Y - at `$.a.b``, so that the field comes first."""
    text, _, place = str(error).partition(" - at `$.")
    return f"{place.rstrip('`')}: {text}" if place else text
