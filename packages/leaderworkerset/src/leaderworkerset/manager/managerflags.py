"""Defines the flags of `lws manager` (contract 12.1), which override configuration and log settings.

A flag overrides the file only if it was given (R-MGR-1).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec import structs

from kuberuntime.objects import decimals, duration
from leaderworkerset.api.metadata import LEASE
from leaderworkerset.manager.config.configuration import Configuration
from leaderworkerset.manager.goflags import Flag, boolean
from leaderworkerset.manager.managerlog import LEVELS, TIMES, Encoder, LogSettings

N = TypeVar("N", int, float)

DEBUG_VERBOSITY: Final = 4
DEPRECATED: Final = "Deprecated: use the configuration file instead."


def number(text: str) -> float:
    """Parse a decimal number."""
    return _number(float, text)


def integer(text: str) -> int:
    """Parse an integer."""
    return _number(int, text)


def level(text: str) -> str:
    """Parse a log level, which is a name or a verbosity of at least 1.

    A verbosity of 4 or more enables debug logs.
    """
    if verbosity := decimals.natural(text):
        return "debug" if verbosity >= DEBUG_VERBOSITY else "info"
    if text not in LEVELS:
        raise ValueError(f"invalid log level {text!r}: must be one of {', '.join(LEVELS)} or a number above 0")
    return text


def choice(*allowed: str) -> Callable[[str], str]:
    """Return a parser for a fixed set of values."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return read


FLAGS: Final = (
    Flag("config", str, "Path to the configuration file. If omitted, the defaults and the flags are used."),
    Flag("version", boolean, "Print the version and exit."),
    Flag("kubeconfig", str, "Path to a kubeconfig file. Only required outside of a cluster."),
    Flag("metrics-bind-address", str, f"Address of the metrics endpoint. {DEPRECATED}", ":8443"),
    Flag("health-probe-bind-address", str, f"Address of the health probe endpoint. {DEPRECATED}", ":8081"),
    Flag("kube-api-qps", number, "Maximum queries per second (QPS) to the API server.", "500"),
    Flag("kube-api-burst", integer, "Maximum burst of queries to the API server.", "500"),
    Flag("leader-elect", boolean, "Enable leader election for the manager.", "true"),
    Flag(
        "leader-elect-lease-duration",
        duration.parse,
        f"Duration for which candidates wait before they try to acquire an expired lease. {DEPRECATED}",
        "15s",
    ),
    Flag(
        "leader-elect-renew-deadline",
        duration.parse,
        f"Duration for which the leader retries lease renewal before it gives up leadership. {DEPRECATED}",
        "10s",
    ),
    Flag(
        "leader-elect-retry-period",
        duration.parse,
        f"Duration between attempts to acquire or renew the lease. {DEPRECATED}",
        "2s",
    ),
    Flag("leader-elect-resource-lock", str, f"Resource type of the lock. Must be leases. {DEPRECATED}", "leases"),
    Flag("leader-elect-resource-name", str, f"Name of the lock resource. {DEPRECATED}", LEASE),
    Flag(
        "zap-devel",
        boolean,
        "Enable development mode, in which the default encoding is console and the default level is debug, instead of json and info.",
        "true",
    ),
    Flag("zap-encoder", choice("console", "json"), "Log encoding. One of: console, json."),
    Flag(
        "zap-log-level",
        level,
        "Log level. One of: debug, info, warning, error, panic, or a number. 1 to 3 correspond to info, and higher numbers to debug.",
    ),
    Flag(
        "zap-stacktrace-level",
        level,
        "Lowest level at which stack traces are captured. One of: info, warning, error, panic.",
    ),
    Flag("zap-time-encoding", choice(*TIMES), f"Time encoding. One of: {', '.join(TIMES)}.", "rfc3339"),
)

PLACES: Final = {
    "metrics-bind-address": ("metrics", "bind_address"),
    "health-probe-bind-address": ("health", "health_probe_bind_address"),
    "kube-api-qps": ("client_connection", "qps"),
    "kube-api-burst": ("client_connection", "burst"),
    "leader-elect": ("leader_election", "leader_elect"),
    "leader-elect-lease-duration": ("leader_election", "lease_duration"),
    "leader-elect-renew-deadline": ("leader_election", "renew_deadline"),
    "leader-elect-retry-period": ("leader_election", "retry_period"),
    "leader-elect-resource-lock": ("leader_election", "resource_lock"),
    "leader-elect-resource-name": ("leader_election", "resource_name"),
}
"""The configuration section and field that a flag overrides."""


def override(configuration: Configuration, values: Mapping[str, Any]) -> Configuration:
    """Return the configuration with the specified flags applied."""
    for name, value in values.items():
        if name in PLACES:
            section, field = PLACES[name]
            changed = structs.replace(getattr(configuration, section), **{field: value})
            configuration = structs.replace(configuration, **{section: changed})
    return configuration


def log_settings(values: Mapping[str, Any]) -> LogSettings:
    """Return the log settings. Development mode has different defaults."""
    devel = values.get("zap-devel", True)
    encoder: Encoder = values.get("zap-encoder", "console" if devel else "json")
    return LogSettings(
        encoder=encoder,
        level=values.get("zap-log-level", "debug" if devel else "info"),
        stacktrace_level=values.get("zap-stacktrace-level", "warning" if devel else "error"),
        times=values.get("zap-time-encoding", "rfc3339"),
    )


def _number(kind: Callable[[str], N], text: str) -> N:
    try:
        return kind(text)
    except ValueError as error:
        raise ValueError("parse error") from error
