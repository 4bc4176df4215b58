"""What an OpenShift cluster says of itself: its TLS profile, and how many control plane nodes it has (R-OP-12, R-OP-28).

In: its objects `cluster` of `apiservers` and `infrastructures`. Out: the section `tls` of the manager's configuration, and
how long the operator's lease holds. Without a profile of its own, a cluster has the intermediate one. Suites that the
manager does not offer are left out: those of finite-field Diffie-Hellman, and 3DES.
"""

from collections.abc import Iterable
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from leaderworkerset.manager.config.ciphersuites import OPENSSL, TLS13
from leaderworkerset.manager.config.configuration import TLS12
from leaderworkerset.manager.config.configuration import TLS13 as ONLY_TLS13

API_SERVERS: Final = Resource("config.openshift.io", "v1", "apiservers", "APIServer", namespaced=False)
CLUSTER: Final = ObjectKey("", "cluster")
"""Both kinds have one object, of this name."""

INFRASTRUCTURES: Final = Resource("config.openshift.io", "v1", "infrastructures", "Infrastructure", namespaced=False)
SINGLE_REPLICA: Final = "SingleReplica"
TIMES: Final = (137.0, 107.0, 26.0)
SINGLE_REPLICA_TIMES: Final = (270.0, 240.0, 60.0)
"""Lease, renewal, retry in seconds: with a single control plane node, longer than that takes to restart."""

INTERMEDIATE: Final = "Intermediate"
IANA: Final = {openssl: iana for iana, openssl in OPENSSL.items()} | {name: name for name in TLS13}
"""OpenSSL's names, which profiles use, to those of the configuration."""

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


def tls_section(api_server: JSONObject | None) -> JSONObject:
    """Return the section `tls`; empty where there is no such object.

    >>> tls_section({"spec": {"tlsSecurityProfile": {"type": "Modern"}}}), tls_section(None)
    ({'minVersion': 'VersionTLS13'}, {})
    """
    if api_server is None:
        return {}
    profile = meta.spec(api_server).get("tlsSecurityProfile") or {}
    kind = profile.get("type") or INTERMEDIATE
    if kind == "Modern":
        return {"minVersion": ONLY_TLS13}
    if kind != "Custom":
        return _with_suites(SUITES.get(kind, FORWARD))
    custom = profile.get("custom") or {}
    if custom.get("minTLSVersion") == ONLY_TLS13:
        return {"minVersion": ONLY_TLS13}
    return _with_suites(custom.get("ciphers") or ())


def _with_suites(names: Iterable[str]) -> JSONObject:
    """Return TLS 1.2, the oldest that the manager speaks, with those of the suites that it has."""
    known = [IANA[name] for name in names if name in IANA]
    return {"minVersion": TLS12} | ({"cipherSuites": known} if known else {})


def is_single(infrastructure: JSONObject | None) -> bool:
    """Return whether there is one control plane node; unknown is no."""
    return meta.status(infrastructure or {}).get("controlPlaneTopology") == SINGLE_REPLICA


def election_times(infrastructure: JSONObject) -> tuple[float, float, float]:
    """Return lease duration, renew deadline and retry period for a cluster.

    >>> election_times({"status": {"controlPlaneTopology": "SingleReplica"}}), election_times({})
    ((270.0, 240.0, 60.0), (137.0, 107.0, 26.0))
    """
    return SINGLE_REPLICA_TIMES if is_single(infrastructure) else TIMES
