"""Defines the meaning of conditions for health checks in Argo CD (Lua) and Flux (CEL).

kstatus, which `kubectl` plugins and Flux use by default, only knows the conditions Reconciling, Stalled and Ready.
Without these conditions, it treats every object as current. So Flux needs expressions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, Resource
from leaderworkerset.api.conditions import CONDITIONS, ObjectHealth
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.core.disaggregatedset import rolescalers, setstatus
from leaderworkerset.install.operatornames import OPERATORS
from leaderworkerset.operator.operatorstatus import OperatorCondition


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The conditions of a kind with their meaning, from general to specific."""

    conditions: dict[str, ObjectHealth]
    unmanaged: tuple[str, ...] = ()
    """The values of `spec.managementState` for which tools do not wait."""

    def types(self, health: ObjectHealth) -> list[str]:
        """Return the types of the conditions with this meaning, most specific first."""
        return [kind for kind, meaning in reversed(self.conditions.items()) if meaning is health]


HEALTH: Final[Mapping[Resource, HealthCheck]] = {
    LEADERWORKERSETS: HealthCheck({row.type: row.health for row in CONDITIONS}),
    DISAGGREGATED_SETS: HealthCheck({row.type: row.health for row in setstatus.CONDITIONS}),
    ROLE_SCALERS: HealthCheck({rolescalers.READY: ObjectHealth.HEALTHY}),
    OPERATORS: HealthCheck(
        {kind.value: kind.health for kind in OperatorCondition}, unmanaged=("Unmanaged", "Force", "Removed")
    ),
}
"""All kinds that have a separate CRD."""

SEEN: Final = "has(status.conditions)"

BEGIN: Final = """\
local function result(status, message) return {status = status, message = message} end
local function text(one) return one.message ~= "" and one.message or one.reason or one.type end
"""
UNMANAGED: Final = """\
for _, state in ipairs({UNMANAGED}) do
  if (obj.spec or {}).managementState == state then return result("Suspended", "managementState is " .. state) end
end
"""
OBSERVE: Final = """\
local found, observed = {}, (obj.status or {}).observedGeneration or 0
for _, one in ipairs((obj.status or {}).conditions or {}) do
  found[one.type] = one
  observed = math.max(observed, one.observedGeneration or 0)
end
local function is(kind, status) return found[kind] ~= nil and found[kind].status == status end
if observed ~= 0 and observed < (obj.metadata.generation or 0) then
  return result("Progressing", "waiting until the latest change is observed")
end
"""
ANY: Final = """\
for _, kind in ipairs({KINDS}) do
  if is(kind, "STATUS") then return result("HEALTH", text(found[kind])) end
end
"""
END: Final = """\
return result("Progressing", found["KIND"] and text(found["KIND"]) or "waiting for its controller")
"""


def lua(check: HealthCheck) -> str:
    """Return the health check for Argo CD, a Lua 5.1 script that reads `obj`."""
    steps = [BEGIN, UNMANAGED.replace("UNMANAGED", quoted(check.unmanaged)) if check.unmanaged else "", OBSERVE]
    for health, status, state in (
        (ObjectHealth.DEGRADED, "True", "Degraded"),
        (ObjectHealth.REQUIRED, "False", "Progressing"),
        (ObjectHealth.PROGRESSING, "True", "Progressing"),
        (ObjectHealth.HEALTHY, "True", "Healthy"),
    ):
        kinds = check.types(health)
        step = ANY.replace("STATUS", status).replace("HEALTH", state).replace("KINDS", quoted(kinds))
        steps.append(step if kinds else "")
    return "".join([*steps, END.replace("KIND", check.types(ObjectHealth.HEALTHY)[-1])])


def quoted(names: Sequence[str]) -> str:
    """Return names as list items, in both languages."""
    return ", ".join(f'"{name}"' for name in names)


def argo_cd() -> JSONObject:
    """Return the entries for the ConfigMap of Argo CD, as a patch of its keys."""
    data = {
        f"resource.customizations.health.{resource.group}_{resource.kind}": lua(check)
        for resource, check in HEALTH.items()
    }
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": data,
    }


def flux() -> list[JSONObject]:
    """Return `spec.healthCheckExprs` of a Kustomization of Flux."""
    return [
        {"apiVersion": resource.api_version, "kind": resource.kind, "current": current(check)}
        | ({"failed": f"{SEEN} && ({failed})"} if (failed := any_true(check, ObjectHealth.DEGRADED)) else {})
        for resource, check in HEALTH.items()
    ]


def current(check: HealthCheck) -> str:
    """Return the expression that is true if the latest generation is healthy or unmanaged."""
    newest = "(!has(c.observedGeneration) || c.observedGeneration == metadata.generation)"
    healthy = any_true(check, ObjectHealth.HEALTHY, f" && {newest}")
    well = [
        SEEN,
        f"({healthy})" if len(check.types(ObjectHealth.HEALTHY)) > 1 else healthy,
        *(f"!{has_status(kind, 'False')}" for kind in check.types(ObjectHealth.REQUIRED)),
        *(f"!{is_true(kind)}" for kind in check.types(ObjectHealth.PROGRESSING)),
    ]
    unmanaged = f"has(spec.managementState) && spec.managementState in [{quoted(check.unmanaged)}] || "
    return (unmanaged if check.unmanaged else "") + " && ".join(well)


def any_true(check: HealthCheck, health: ObjectHealth, more: str = "") -> str:
    """Return the expression for a True condition with this meaning."""
    return " || ".join(is_true(kind, more) for kind in check.types(health))


def is_true(kind: str, more: str = "") -> str:
    """Return the expression for a True condition."""
    return has_status(kind, "True", more)


def has_status(kind: str, status: str, more: str = "") -> str:
    """Return the expression for a condition with this status."""
    return f'status.conditions.exists(c, c.type == "{kind}" && c.status == "{status}"{more})'
