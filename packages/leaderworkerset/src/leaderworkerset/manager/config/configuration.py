"""Defines the manager configuration file (contract 12.2, N-CFG-3).

Its type is `Configuration` in `config.lws.x-k8s.io/v1` or `v1alpha1`.

Input: a document as a YAML reader returns it. Output: a `Configuration` with all defaults, or a `ConfigurationError`,
with the text of the Go manager if it has one. Decoding is strict, so that an unknown field is an error. As in Go,
null and the empty value mean the default.
"""

from datetime import timedelta
from enum import StrEnum
from types import UnionType
from typing import Any, Final, TypeAlias, get_args

import msgspec

from kuberuntime.manifests import yamltext
from kuberuntime.objects import duration
from kuberuntime.objects.duration import Duration
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.api.metadata import LEASE
from leaderworkerset.capabilities.disruption import disruptionsettings as disruption
from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.core.policies.recreation import RestartSettings

API_VERSION: Final = "config.lws.x-k8s.io/v1"
DEPRECATED: Final = "config.lws.x-k8s.io/v1alpha1"
"""The previous version of the file, with the same fields."""

KIND: Final = "Configuration"

TLS12: Final = "VersionTLS12"
TLS13: Final = "VersionTLS13"
LOCK: Final = "leases"


class ConfigurationError(ValueError):
    """The configuration is invalid. The message contains the field and the value."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base class of configuration sections. Field names are in camel case."""


class Webhook(_Section, frozen=True, kw_only=True):
    """The address and certificate directory of the webhook server."""

    port: int = 9443
    host: str = ""
    cert_dir: str = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - the directory that manifests mount


class Metrics(_Section, frozen=True, kw_only=True):
    """The address of the metrics server. "0" disables it."""

    bind_address: str = ":8443"


class Health(_Section, frozen=True, kw_only=True):
    """The address and paths of the probes."""

    health_probe_bind_address: str = ":8081"
    readiness_endpoint_name: str = "/readyz"
    liveness_endpoint_name: str = "/healthz"


class LeaderElection(_Section, frozen=True, kw_only=True):
    """The leader election settings. `resource_namespace` is accepted but ignored (R-MGR-3)."""

    leader_elect: bool = True
    lease_duration: Duration = Duration(15)
    renew_deadline: Duration = Duration(10)
    retry_period: Duration = Duration(2)
    resource_lock: str = LOCK
    resource_name: str = LEASE
    resource_namespace: str = ""


class InternalCertManagement(_Section, frozen=True, kw_only=True):
    """Settings for the webhook certificate, including its issuer, the Service, and the Secret."""

    enable: bool = True
    webhook_service_name: str = "lws-webhook-service"
    webhook_secret_name: str = "lws-webhook-server-cert"  # noqa: S105 - a name


class GangSchedulingManagement(_Section, frozen=True, kw_only=True):
    """The gang scheduler, which is a provider name or `auto`."""

    scheduler_provider: str = ""


class ClientConnection(_Section, frozen=True, kw_only=True):
    """The sustained rate limit `qps` and the `burst` of API requests. Negative values disable the limit."""

    qps: float = 500.0
    burst: int = 500


class GroupRestarts(_Section, frozen=True, kw_only=True):
    """The settings for recreating failed groups. The Go manager rejects this section.

    If `max_group_restarts` is 0, there is no limit. If `release_lost_pods_after` is 0, lost pods are not
    force-deleted.
    """

    backoff: bool = True
    first_delay: Duration = Duration(10)
    longest_delay: Duration = Duration(300)
    reset_after: Duration = Duration(600)
    max_group_restarts: int = 0
    release_lost_pods_after: Duration = Duration(0)


class RecorderSettings(_Section, frozen=True, kw_only=True):
    """The settings for recording group failures in ConfigMaps, including limits (docs/adr/0019).

    The Go manager does not have this section, and rejects it.
    """

    enable: bool = False
    keep_for: Duration = Duration(7 * 24 * 3600)
    mebibytes: int = 8
    mebibytes_per_set: int = 1


class DisruptionBudgets(_Section, frozen=True, kw_only=True):
    """The settings for disruption budgets of groups, including the default (docs/adr/0022).

    The Go manager does not have this section, and rejects it.
    """

    enable: bool = False
    budget: str = disruption.OFF
    watch_nodes: bool = True
    turn: Duration = Duration(60)


class Maintenance(_Section, frozen=True, kw_only=True):
    """The settings for moving groups from closed nodes (docs/adr/0023).

    They include an additional taint and the default.

    The Go manager does not have this section, and rejects it.
    """

    enable: bool = False
    taint: str = ""
    move_by_default: bool = False


class TLS(_Section, frozen=True, kw_only=True):
    """The TLS settings of the metrics and webhook servers."""

    min_version: str = ""
    cipher_suites: tuple[str, ...] = ()


class PodAdmission(StrEnum):
    """Defines whether the webhook or kube-apiserver adds pods to their groups (docs/adr/0050-pod-policies.md).

    `Auto` uses the policy if the API server supports policies. `Policy` requires this support. In both cases, the
    webhook handles pods that the policy does not support.
    """

    AUTO = "Auto"
    POLICY = "Policy"
    WEBHOOK = "Webhook"


class FeatureGates(_Section, frozen=True, kw_only=True):
    """The feature gates. An unknown feature gate is an unknown field (N-CFG-1)."""

    workload_aware_scheduling: bool = msgspec.field(default=False, name="WorkloadAwareScheduling")


class Configuration(_Section, frozen=True, kw_only=True):
    """The complete configuration file."""

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
    pod_admission: str = PodAdmission.WEBHOOK.value

    @property
    def restarts(self) -> RestartSettings:
        """Return the settings for recreating failed groups."""
        section = self.group_restarts or GroupRestarts()
        return RestartSettings(
            has_backoff=section.backoff,
            first_delay=timedelta(seconds=section.first_delay),
            longest_delay=timedelta(seconds=section.longest_delay),
            reset_after=timedelta(seconds=section.reset_after),
            max_restarts=section.max_group_restarts or None,
        )

    @property
    def release_after(self) -> timedelta | None:
        """Return the default time after which lost pods are force-deleted, or None if this is disabled."""
        section = self.group_restarts or GroupRestarts()
        return timedelta(seconds=section.release_lost_pods_after) or None

    @property
    def disruption(self) -> DisruptionSettings | None:
        """Return the disruption budget settings, or None if disruption budgets are disabled."""
        section = self.disruption_budgets
        if not section.enable:
            return None
        return DisruptionSettings(
            budget=section.budget, watches_nodes=section.watch_nodes, open_duration=timedelta(seconds=section.turn)
        )

    @property
    def maintenance_settings(self) -> MaintenanceSettings | None:
        """Return the maintenance settings, or None if groups are not moved."""
        section = self.maintenance
        return MaintenanceSettings(section.taint, section.move_by_default) if section.enable else None

    @property
    def allows_pod_policies(self) -> bool:
        """Return whether a policy in kube-apiserver may admit pods."""
        return self.pod_admission != PodAdmission.WEBHOOK

    @property
    def requires_pod_policies(self) -> bool:
        """Return whether the manager requires an API server with policies."""
        return self.pod_admission == PodAdmission.POLICY

    @property
    def gang_provider(self) -> str:
        """Return the gang scheduling provider, or an empty string if gang scheduling is disabled."""
        return "" if self.gang_scheduling_management is None else self.gang_scheduling_management.scheduler_provider


Sections: TypeAlias = type[msgspec.Struct]


def parse(text: bytes) -> Configuration:
    """Parse the content of a configuration file."""
    try:
        return decode(yamltext.load(text, unique_keys=True))
    except yamltext.YamlError as error:
        raise ConfigurationError(f"invalid YAML: {error}") from error


def decode(document: JSON) -> Configuration:
    """Decode a document strictly. Errors contain all unknown fields."""
    if not isinstance(document, dict):
        raise ConfigurationError(f"expected an object with apiVersion {API_VERSION} and kind {KIND}")
    type_meta = (document.get("apiVersion"), document.get("kind"))
    if type_meta not in ((API_VERSION, KIND), (DEPRECATED, KIND)):
        raise ConfigurationError(
            f'no kind "{type_meta[1]}" is registered for version "{type_meta[0]}". Use {KIND} of {API_VERSION}'
        )
    unknown = _unknown_fields(document, Configuration, "")
    if unknown:
        texts = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise ConfigurationError(f"strict decoding error: {texts}")
    try:
        return msgspec.convert(_without_empty(document), Configuration, dec_hook=_decode_duration)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"strict decoding error: {_plain(error)}") from error


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
    types = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return next((cls for cls in types if isinstance(cls, type) and issubclass(cls, msgspec.Struct)), None)


def _without_empty(value: JSON) -> JSON:
    """Remove null, empty and zero values, which are equivalent to defaults, except in strings and lists."""
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
    """Reorder the msgspec error `Expected X, got Y - at `$.a.b``, so that the field is first."""
    text, _, place = str(error).partition(" - at `$.")
    return f"{place.rstrip('`')}: {text}" if place else text
