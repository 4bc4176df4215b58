"""Evaluates probes, with their settings (defaults as in Kubernetes) and a tally of results for the verdict.

Pure. The verdict of a probe changes after `successThreshold` good or `failureThreshold` bad results in a row. Before
the first verdict a container counts as alive, not ready, and not started.
"""

from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.spec import podspec
from localkube.kubelet.spec.podspec import SpecError

Kind: TypeAlias = Literal["startup", "liveness", "readiness"]

ACTIONS: Final = ("exec", "httpGet", "tcpSocket")


class ProbeSettings(Struct, frozen=True, kw_only=True):
    """The timing of a probe in seconds, and its thresholds."""

    initial_delay: float
    period: float
    timeout: float
    successes: int
    failures: int


class ProbeResults(Struct, frozen=True):
    """The number of consecutive identical results, and the current verdict."""

    last_result: bool | None = None
    streak: int = 0
    verdict: bool | None = None


def settings(probe: JSONObject) -> ProbeSettings:
    """Parse the settings of a probe. Absent values and zero select the default."""
    return ProbeSettings(
        initial_delay=float(probe.get("initialDelaySeconds") or 0),
        period=float(probe.get("periodSeconds") or 10),
        timeout=float(probe.get("timeoutSeconds") or 1),
        successes=int(probe.get("successThreshold") or 1),
        failures=int(probe.get("failureThreshold") or 3),
    )


def observe(tally: ProbeResults, rules: ProbeSettings, *, good: bool) -> ProbeResults:
    """Return the tally after one more result."""
    streak = tally.streak + 1 if tally.last_result is good else 1
    needed = rules.successes if good else rules.failures
    updated = replace(tally, last_result=good, streak=streak)
    return replace(updated, verdict=good) if streak >= needed else updated


def check(container: JSONObject) -> None:
    """Reject unsupported probes before the container starts."""
    for kind, probe in podspec.container_probes(container):
        where = f'container "{container["name"]}", {kind}Probe'
        if probe.get("grpc"):
            raise SpecError(
                f"{where}.grpc: gRPC probes are not supported on the embedded cluster. Use httpGet, tcpSocket or exec"
            )
        actions = [action for action in ACTIONS if probe.get(action)]
        if len(actions) != 1:
            raise SpecError(f"{where}: must have exactly one of {', '.join(ACTIONS)}, not {len(actions)}")
        if "port" in (probe.get(actions[0]) or {}):
            podspec.resolve_port(container, probe[actions[0]]["port"])
