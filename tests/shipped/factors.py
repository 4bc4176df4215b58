"""Lists user settings with test values: manager fields and flags, and LeaderWorkerSet annotations.

A factor is one setting, or several that only fit together. None means that it is not set. In texts, `{directory}`,
`{metrics}` and `{probes}` are a directory and ports of the process. Fields are named by their path, flags with dashes,
annotations with their prefix.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from kuberuntime.objects.duration import Range
from leaderworkerset.api import labels
from leaderworkerset.capabilities.backoff import backoffsettings as settings
from leaderworkerset.capabilities.backoff.backoffsettings import MOST_RESTARTS
from leaderworkerset.capabilities.disruption import disruptionsettings as disruption
from leaderworkerset.capabilities.lostnodes.forcedeletion import GRACES
from leaderworkerset.capabilities.restartinplace.allcontainers import DEADLINES
from leaderworkerset.core.policies.gang import NONE
from leaderworkerset.manager.config import configuration, configurationrules
from leaderworkerset.manager.config.ciphersuites import OPENSSL, TLS13
from leaderworkerset.manager.config.configuration import LOCK, Configuration, Sections
from leaderworkerset.manager.config.configurationrules import GANG_PROVIDERS
from leaderworkerset.manager.managerlog import LEVELS, TIMES
from leaderworkerset.operator.operatorspec import OPERAND_VERBOSITY

Value: TypeAlias = str | int | bool | tuple[str, ...] | None
Row: TypeAlias = Mapping[str, Value]
"""A process with the value of each setting."""

HOSTS: Final = "kubernetes.io/hostname"
GANG: Final = "gangSchedulingManagement.schedulerProvider"


@dataclass(frozen=True, slots=True)
class Factor:
    """Settings that are set together, with possible values for all of them."""

    names: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]


def one(name: str, *values: Value) -> Factor:
    """Return the factor for a setting that is compatible with all other settings."""
    return Factor((name,), tuple((value,) for value in values))


def limits(allowed: Range) -> tuple[str, str]:
    """Return the minimum and the maximum duration in a range."""
    return "1s", f"{allowed.hours}h"


FIRST: Final = limits(settings.FIRST_DELAYS)
LONGEST: Final = limits(settings.LONGEST_DELAYS)
SUITES: Final = (*OPENSSL, *sorted(TLS13))

LEASE: Final = Factor(
    ("leaderElection.leaseDuration", "leaderElection.renewDeadline", "leaderElection.retryPeriod"),
    (("15s", "10s", "2s"), ("3s", "2s", "500ms")),
)
"""The defaults, and test durations that are used if no durations are set."""

FIELDS: Final = (
    one("webhook.host", "127.0.0.1", ""),
    one("metrics.bindAddress", "127.0.0.1:{metrics}", ":{metrics}", "0"),
    one("health.healthProbeBindAddress", "127.0.0.1:{probes}", ":{probes}", "0"),
    one("health.readinessEndpointName", None, "ready"),
    one("health.livenessEndpointName", None, "alive"),
    one("leaderElection.leaderElect", True, False),
    LEASE,
    one("leaderElection.resourceLock", None, LOCK),
    one("leaderElection.resourceName", None, "another-lease"),
    one("leaderElection.resourceNamespace", None, "elsewhere"),
    Factor(
        ("internalCertManagement.enable", "webhook.certDir"),
        ((None, None), (True, "{directory}/unused"), (False, "{directory}/certs")),
    ),
    one("internalCertManagement.webhookServiceName", None, "another-service"),
    one("internalCertManagement.webhookSecretName", None, "another-secret"),
    one(GANG, None, *GANG_PROVIDERS),
    one("clientConnection.qps", None, 50, -1),
    one("clientConnection.burst", None, 100),
    Factor(
        ("tls.minVersion", "tls.cipherSuites"),
        ((None, None), (configuration.TLS12, SUITES), (configuration.TLS13, None)),
    ),
    one("groupRestarts.backoff", True, False),
    Factor(
        ("groupRestarts.firstDelay", "groupRestarts.longestDelay"),
        ((FIRST[0], LONGEST[0]), (FIRST[1], LONGEST[1])),
    ),
    one("groupRestarts.resetAfter", *limits(settings.RESETS)),
    one("groupRestarts.maxGroupRestarts", 1, MOST_RESTARTS),
    one("groupRestarts.releaseLostPodsAfter", *limits(GRACES)),
    one("recorder.enable", None, False, True),
    one("recorder.keepFor", None, *limits(configurationrules.EPISODE_AGES)),
    Factor(
        ("recorder.mebibytes", "recorder.mebibytesPerSet"),
        ((None, None), (configurationrules.MOST_MEBIBYTES, 1), (1, 1)),
    ),
    one("disruptionBudgets.enable", None, False, True),
    one("disruptionBudgets.budget", None, disruption.OFF, disruption.ROLLOUT, "1", "25%"),
    one("disruptionBudgets.watchNodes", None, False, True),
    one("disruptionBudgets.turn", None, *limits(configurationrules.TURNS)),
    one("maintenance.enable", None, False, True),
    one("maintenance.taint", None, "example.com/maintenance"),
    one("maintenance.moveByDefault", None, False, True),
    one("podAdmission", None, "Auto", "Webhook"),
    one("featureGates.WorkloadAwareScheduling", None, False, True),
)

FLAGS: Final = (
    one("--metrics-bind-address", None, "127.0.0.1:{metrics}", "0"),
    one("--health-probe-bind-address", None, "127.0.0.1:{probes}"),
    one("--kube-api-qps", None, "60", "-1"),
    one("--kube-api-burst", None, "80"),
    one("--leader-elect", None, "true", "false"),
    Factor(
        ("--leader-elect-lease-duration", "--leader-elect-renew-deadline", "--leader-elect-retry-period"),
        ((None, None, None), ("16s", "12s", "1s")),
    ),
    one("--leader-elect-resource-lock", None, LOCK),
    one("--leader-elect-resource-name", None, "lease-of-a-flag"),
    one("--zap-devel", None, "true", "false"),
    one("--zap-encoder", None, "console", "json"),
    one("--zap-log-level", *(str(number) for number in OPERAND_VERBOSITY.values()), *LEVELS),
    one("--zap-stacktrace-level", None, *LEVELS),
    one("--zap-time-encoding", None, *TIMES),
)

ANNOTATIONS: Final = (
    one(labels.RESTART_BACKOFF, None, settings.ON, settings.OFF),
    Factor(
        (labels.RESTART_FIRST_DELAY, labels.RESTART_LONGEST_DELAY),
        ((None, None), (FIRST[0], LONGEST[0]), (FIRST[1], LONGEST[1])),
    ),
    one(labels.RESTART_RESET_AFTER, None, *limits(settings.RESETS)),
    one(labels.MAX_GROUP_RESTARTS, None, "1", str(MOST_RESTARTS), settings.UNLIMITED),
    one(labels.RESUME_GROUP_RESTARTS, None, "a" * settings.LONGEST_RESUMED),
    one(labels.RELEASE_LOST_PODS_AFTER, None, *limits(GRACES), settings.OFF),
    one(labels.IN_PLACE_RESTARTS, None, *limits(DEADLINES)),
    one(labels.DO_NOT_DISRUPT, None, disruption.STARTING),
    one(labels.DISRUPTION_BUDGET, None, disruption.OFF, disruption.ROLLOUT, "0", "100%"),
    one(labels.MOVE_OFF_CLOSED_NODES, None, "on", "off"),
    one(labels.REVISION_HISTORY_LIMIT, None, "0", "100"),
    one(labels.RECREATE_GROUP_AFTER_START, None, "true"),
    Factor((labels.EXCLUSIVE_TOPOLOGY, labels.GANG_SCHEDULER), ((None, None), (HOSTS, NONE))),
)

ALWAYS: Final[Mapping[str, str]] = {
    "apiVersion": "The tests use only the current version.",
    "kind": "The field has only one valid value.",
    "webhook.port": "Each process requires a free port.",
    "--config": "Each process has a configuration file, as in the Deployment of the manager.",
    "--kubeconfig": "Each process requires a kubeconfig, because the tests run outside of pods.",
}
"""Settings of each process, with the reason why the matrix tests no other value."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "--version": "unit/lwsctl/cli/commands/test_manager.py",
    "ENABLE_WEBHOOKS": "kubernetes/manager/test_start.py",
    labels.RECOVER: "integration/lwsctl/test_budget.py",
    labels.FOLLOW_PROGRESS: "e2e/test_progress.py",
    labels.PROGRESS_TIMEOUT: "e2e/test_progress.py",
    labels.ON_HANG: "e2e/test_progress.py",
    labels.RUN_TO_COMPLETION: "integration/lwsctl/test_completion.py",
    labels.COMPLETION_DEADLINE: "integration/lwsctl/test_completion.py",
    labels.TTL_AFTER_FINISHED: "integration/lwsctl/test_completion.py",
    labels.IN_PLACE: "integration/lwsctl/test_inplace.py",
    labels.POD_TERMINATION_POLICY: "integration/lws/test_ends.py",
    labels.STAY_ON_NODES: "integration/lws/test_places.py",
    labels.GANG_SCHEDULER: "kubernetes/gang/test_gangs.py",
    labels.SUBGROUP_EXCLUSIVE_TOPOLOGY: "integration/lws/test_placement.py",
}
"""Settings and values that require a different environment than the matrix, with their test."""


def fields(section: Sections = Configuration, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the type of each configuration field."""
    for field in msgspec.structs.fields(section):
        inner = configuration._section_of(field.type)
        name = f"{path}{field.encode_name}"
        if inner is None:
            yield name, field.type
        else:
            yield from fields(inner, f"{name}.")


def document(row: Row, **places: object) -> dict[str, Any]:
    """Return the configuration sections and fields that a row sets."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if value is not None and name[0] != "-" and "/" not in name:
            section, _, field = name.partition(".")
            inner = found.setdefault(section, {}) if field else found
            inner[field or section] = _placed(value, places)
    return found


def flags(row: Row, **places: object) -> list[str]:
    """Return the flags that a row sets."""
    return [f"{name}={_placed(value, places)}" for name, value in row.items() if name[0] == "-" and value is not None]


def annotations(row: Row) -> dict[str, str]:
    """Return the LeaderWorkerSet annotations that a row sets."""
    return {name: str(value) for name, value in row.items() if "/" in name and value is not None}


def _placed(value: Value, places: Mapping[str, object]) -> Value:
    return value.format_map(places) if isinstance(value, str) else value
