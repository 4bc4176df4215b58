"""Reads the TLS profile and the number of control plane nodes of an OpenShift cluster (R-OP-12, R-OP-28).

Input: the objects `cluster` of `apiservers` and `infrastructures`. Output: the section `tls` of the manager's
configuration, and the times of the operator's lease. A cluster without a profile has the intermediate profile. The
same applies if a cluster has unrelated kinds with these names. Suites that the manager does not support (finite-field
Diffie-Hellman and 3DES) are omitted.
"""

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from leaderworkerset.manager.config.ciphersuites import OPENSSL, TLS13
from leaderworkerset.manager.config.configuration import TLS12
from leaderworkerset.manager.config.configuration import TLS13 as ONLY_TLS13

API_SERVERS: Final = Resource("config.openshift.io", "v1", "apiservers", "APIServer", namespaced=False)
CLUSTER: Final = ObjectKey("", "cluster")
"""The name of the only object of both kinds."""

INFRASTRUCTURES: Final = Resource("config.openshift.io", "v1", "infrastructures", "Infrastructure", namespaced=False)
SINGLE_REPLICA: Final = "SingleReplica"
TIMES: Final = (30.0, 20.0, 5.0)
"""The lease duration, renew deadline and retry period in seconds. A new replica leads after at most 36 s."""

OPENSHIFT_TIMES: Final = (137.0, 107.0, 26.0)
SINGLE_REPLICA_TIMES: Final = (270.0, 240.0, 60.0)
"""The settings of OpenShift for a single control plane node, which exceed its restart time."""

INTERMEDIATE: Final = "Intermediate"
IANA: Final = {openssl: iana for iana, openssl in OPENSSL.items()} | {name: name for name in TLS13}
"""The configuration names for the OpenSSL cipher suites in TLS profiles."""

FORWARD: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
)
OLDER: Final = (
    "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA256",
    "AES128-SHA",
    "AES256-SHA",
)
SUITES: Final = {INTERMEDIATE: FORWARD, "Old": (*FORWARD, *OLDER)}


T = TypeVar("T")


class _Custom(msgspec.Struct):
    minimum_version: str | None = msgspec.field(name="minTLSVersion", default=None)
    ciphers: list[str] | None = None


class _Profile(msgspec.Struct):
    type: str | None = None
    custom: _Custom | None = None


class _APIServerSpec(msgspec.Struct):
    profile: _Profile | None = msgspec.field(name="tlsSecurityProfile", default=None)


class _APIServer(msgspec.Struct):
    """The cached fields of the `apiservers` object with the name `cluster`."""

    spec: _APIServerSpec | None = None


class _InfrastructureStatus(msgspec.Struct, rename="camel"):
    control_plane_topology: str | None = None


class _Infrastructure(msgspec.Struct):
    """The cached fields of the `infrastructures` object with the name `cluster`."""

    status: _InfrastructureStatus | None = None


def tls_section(api_server: JSONObject | None) -> JSONObject:
    """Return the `tls` section, or an empty section if the object does not exist.

    >>> tls_section({"spec": {"tlsSecurityProfile": {"type": "Modern"}}}), tls_section(None)
    ({'minVersion': 'VersionTLS13'}, {})
    """
    if api_server is None:
        return {}
    spec = _decode(api_server, _APIServer).spec or _APIServerSpec()
    profile = spec.profile or _Profile()
    kind = profile.type or INTERMEDIATE
    if kind == "Modern":
        return {"minVersion": ONLY_TLS13}
    if kind != "Custom":
        return _with_suites(SUITES.get(kind, FORWARD))
    custom = profile.custom or _Custom()
    if custom.minimum_version == ONLY_TLS13:
        return {"minVersion": ONLY_TLS13}
    return _with_suites(custom.ciphers or ())


def _decode(obj: JSONObject, kind: type[T]) -> T:
    """Decode an object. Objects with invalid types are treated as empty."""
    try:
        return msgspec.convert(obj, kind)
    except msgspec.ValidationError:
        return kind()


def _with_suites(names: Iterable[str]) -> JSONObject:
    """Return TLS 1.2, which is the oldest supported version, with the supported cipher suites."""
    suites = [IANA[name] for name in names if name in IANA]
    return {"minVersion": TLS12} | ({"cipherSuites": suites} if suites else {})


def is_single(infrastructure: JSONObject | None) -> bool:
    """Return whether there is one control plane node, or False if the number is unknown."""
    status = _decode(infrastructure or {}, _Infrastructure).status
    return status is not None and status.control_plane_topology == SINGLE_REPLICA


def election_times(infrastructure: JSONObject) -> tuple[float, float, float]:
    """Return the lease duration, renew deadline and retry period. `infrastructure` is empty without OpenShift.

    >>> election_times({"status": {"controlPlaneTopology": "SingleReplica"}}), election_times({})
    ((270.0, 240.0, 60.0), (30.0, 20.0, 5.0))
    """
    if not infrastructure:
        return TIMES
    return SINGLE_REPLICA_TIMES if is_single(infrastructure) else OPENSHIFT_TIMES
