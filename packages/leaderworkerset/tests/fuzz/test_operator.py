"""Tests that the operator's reconcile returns a plan for any `cluster` object, operand and foreign kinds.

Fields with a schema of the API server are varied within it: texts, numbers, absent fields. Fields that others define
(OpenShift's kinds, cert-manager's, and the kinds of Prometheus) are varied anywhere, as this cluster may serve another
definition of the same name.
"""

from random import Random
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from tests.fuzz import junk
from tests.fuzz.seeds import seeds
from tests.unit.leaderworkerset.operator.clusters import ISSUED, actions, cluster, installed, observed, plan

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Apply, Patch, Put, PutStatus
from leaderworkerset.install import operatornames
from leaderworkerset.install.installsettings import CERTIFICATES, ISSUERS, SERVICE_MONITORS
from leaderworkerset.operator.driftcorrection import Live
from leaderworkerset.operator.sync import ObservedOperand

LENGTH: Final = 60
"""The number of observations for each seed."""

FOREIGN: Final = (ISSUERS, CERTIFICATES, SERVICE_MONITORS)
STATES: Final[tuple[Any, ...]] = ("Managed", "Unmanaged", "Removed", "Force", "", None, 1, {})
SPEC: Final[JSONObject] = {
    "managementState": "Managed",
    "logLevel": "Debug",
    "operatorLogLevel": "Normal",
    "nodePlacement": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}]},
    "unsupportedConfigOverrides": {"controller": {"groupKindConcurrency": {"Pod": 3}}, "tls": {"minVersion": "x"}},
    "observedConfig": {"tls": {"minVersion": "VersionTLS13"}},
}
STATUS: Final[JSONObject] = {
    "observedGeneration": 2,
    "conditions": [{"type": "Available", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "generations": [{"group": "apps", "resource": "deployments", "lastGeneration": 1}],
}
API_SERVER: Final[JSONObject] = {
    "spec": {"tlsSecurityProfile": {"type": "Custom", "custom": {"ciphers": ["AES128-SHA"], "minTLSVersion": "x"}}}
}
INFRASTRUCTURE: Final[JSONObject] = {"status": {"controlPlaneTopology": "SingleReplica"}}


def bent_below(random: Random, obj: JSONObject, field: str) -> JSONObject:
    """Return the object with a different value in one of its fields."""
    return obj | {field: junk.bent(random, obj.get(field) or {})}


def asked(random: Random) -> JSONObject:
    """Return a `cluster` object."""
    annotations = {
        name: random.choice(("internal", "true", *junk.TEXTS))
        for name in (
            operatornames.CERTIFICATES,
            operatornames.DELETE_CRDS,
            operatornames.REMOVE_OPERAND,
            operatornames.GROUP_RESTARTS,
        )
        if random.random() < 0.3
    }
    spec: Any = junk.bent(random, SPEC)
    if isinstance(spec, dict) and random.random() < 0.3:
        spec = spec | {"managementState": random.choice(STATES)}
    return cluster(annotations) | {"spec": spec, "status": STATUS if random.random() < 0.5 else {}}


def bent_operand(random: Random) -> Live:
    """Return an installed operand with some objects changed, missing, or of unknown origin."""
    found: dict[Any, JSONObject] = dict(installed(cluster()))
    for key in random.sample(sorted(found, key=str), 4):
        kind, name = key
        obj = found[key]
        match random.randrange(4):
            case 0:
                del found[key]
            case 1:
                labels = {random.choice(junk.TEXTS): random.choice(junk.TEXTS)}
                found[key] = obj | {"metadata": meta.metadata(obj) | {"labels": labels, "annotations": labels}}
            case 2:
                found[key] = bent_below(random, obj, "spec") if kind in FOREIGN else obj | {"spec": {}, "data": {}}
            case 3:
                found[kind, name._replace(name=f"{name.name}-other")] = obj
    return found


def seen(random: Random) -> ObservedOperand:
    """Return a possible observation of the operator."""
    secrets: Any = {name: {"data": {"tls.crt": random.choice(junk.TEXTS)}} for name in ISSUED}
    return replace(
        observed(asked(random), bent_operand(random) if random.random() < 0.7 else None),
        secrets=secrets if random.random() < 0.3 else ISSUED,
        api_server=junk.bent(random, API_SERVER) if random.random() < 0.5 else None,
        infrastructure=junk.bent(random, INFRASTRUCTURE) if random.random() < 0.5 else None,
    )


def test_every_observation_leads_to_a_valid_plan() -> None:
    for seed in seeds(10):
        random = Random(seed)
        for number in range(LENGTH):
            state = seen(random)
            again = f"seed {seed}, observation {number} (again: SEEDS={seed}-{seed + 1})"
            try:
                for action in actions(plan(state)):
                    if isinstance(action, Apply | Put | PutStatus):
                        msgspec.json.encode(action.object)
                    elif isinstance(action, Patch):
                        msgspec.json.encode(action.patch)
            except Exception as error:
                raise AssertionError(f"{again}: {error!r}") from error
