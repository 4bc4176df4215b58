"""What conditions mean to tools that wait for objects: health checks of Argo CD (Lua) and of Flux (CEL), from one table.

kstatus, which `kubectl` plugins and Flux ask by themselves, knows the conditions Reconciling, Stalled and Ready only: of kinds
without these it takes every object that it has seen for current. Hence the expressions for Flux.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONFIG_MAPS, Resource
from leaderworkerset.api import conditions
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from leaderworkerset.core.disaggregatedset import setstatus
from leaderworkerset.operator import operatorstatus
from leaderworkerset.operator.operatornames import OPERATORS


@dataclass(frozen=True, slots=True)
class Health:
    """What each condition type means: that the object is healthy, makes progress, or is degraded while the condition is True."""

    healthy: tuple[str, ...]
    progressing: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    """Those that must not be False."""
    neutral: tuple[str, ...] = ()
    """Those that do not change the health."""
    unmanaged: tuple[str, ...] = ()
    """Values of `spec.managementState` with which nothing is to be waited for."""


HEALTH: Final[Mapping[Resource, Health]] = {
    LEADERWORKERSETS: Health(
        healthy=(conditions.AVAILABLE.type, conditions.COMPLETE.type),
        progressing=(conditions.UPDATE_IN_PROGRESS.type, conditions.PROGRESSING.type),
        degraded=(conditions.FAILED.type, conditions.DEGRADED.type),
        needed=(conditions.WORKLOAD_SCHEDULING_CREATED.type,),
        # A group that leaves a node is Progressing by itself. Until then it serves, and a sync must not wait for a drain.
        neutral=(conditions.MOVE_IN_PROGRESS.type,),
    ),
    DISAGGREGATED_SETS: Health(healthy=(setstatus.AVAILABLE.type,), progressing=(setstatus.PROGRESSING.type,)),
    ROLE_SCALERS: Health(healthy=("Ready",)),
    OPERATORS: Health(
        healthy=(operatorstatus.AVAILABLE,),
        progressing=(operatorstatus.PROGRESSING,),
        degraded=(operatorstatus.DEGRADED, operatorstatus.SYNC_DEGRADED),
        neutral=(operatorstatus.UPGRADEABLE, operatorstatus.DELETES_DEFINITIONS),
        unmanaged=("Unmanaged", "Force", "Removed"),
    ),
}
"""Every kind with a definition of ours."""

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
  return result("Progressing", "waiting for the newest change to be observed")
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


def lua(health: Health) -> str:
    """Return the health check of Argo CD: a Lua 5.1 program that reads `obj`."""
    steps = [BEGIN, UNMANAGED.replace("UNMANAGED", quoted(health.unmanaged)) if health.unmanaged else "", OBSERVE]
    for kinds, status, means in (
        (health.degraded, "True", "Degraded"),
        (health.needed, "False", "Progressing"),
        (health.progressing, "True", "Progressing"),
        (health.healthy, "True", "Healthy"),
    ):
        step = ANY.replace("STATUS", status).replace("HEALTH", means).replace("KINDS", quoted(kinds))
        steps.append(step if kinds else "")
    return "".join([*steps, END.replace("KIND", health.healthy[0])])


def quoted(names: Sequence[str]) -> str:
    """Return names as the items of a list, in both languages."""
    return ", ".join(f'"{name}"' for name in names)


def argo_cd() -> JSONObject:
    """Return what the ConfigMap of Argo CD gets, as a patch of its keys."""
    data = {
        f"resource.customizations.health.{resource.group}_{resource.kind}": lua(health)
        for resource, health in HEALTH.items()
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
        {"apiVersion": resource.api_version, "kind": resource.kind, "current": current(health)}
        | ({"failed": f"{SEEN} && ({failed})"} if (failed := " || ".join(map(is_true, health.degraded))) else {})
        for resource, health in HEALTH.items()
    ]


def current(health: Health) -> str:
    """Return the expression that is true where all is well with the newest generation, or nothing is to be waited for."""
    newest = "(!has(c.observedGeneration) || c.observedGeneration == metadata.generation)"
    healthy = " || ".join(is_true(kind, f" && {newest}") for kind in health.healthy)
    well = [
        SEEN,
        f"({healthy})" if len(health.healthy) > 1 else healthy,
        *(f"!{has_status(kind, 'False')}" for kind in health.needed),
        *(f"!{is_true(kind)}" for kind in health.progressing),
    ]
    left = f"has(spec.managementState) && spec.managementState in [{quoted(health.unmanaged)}] || "
    return (left if health.unmanaged else "") + " && ".join(well)


def is_true(kind: str, more: str = "") -> str:
    """Return the expression that a condition is True."""
    return has_status(kind, "True", more)


def has_status(kind: str, status: str, more: str = "") -> str:
    """Return the expression that a condition has a status."""
    return f'status.conditions.exists(c, c.type == "{kind}" && c.status == "{status}"{more})'
