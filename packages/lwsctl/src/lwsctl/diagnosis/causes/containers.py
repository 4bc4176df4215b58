"""Finds containers that crash, exceed their memory limit, or fail probes or readiness gates. Pure.

If several ranks crashed, the cause is the crash that explains the others (`views.deaths`). The message indicates if
that is uncertain. If a group fails again after its recreation, the reason does not change until the group is ready,
even while it restarts and no pod shows the reason.
"""

from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, podstate, terminations
from kuberuntime.objects.terminations import ContainerFailure
from lwsctl.diagnosis import exits, logerrors, ranks
from lwsctl.diagnosis.causes.kubelets import probekills
from lwsctl.diagnosis.causes.starts import startup_verdict
from lwsctl.diagnosis.finding import Cause, Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.diagnosis.patterns import StageMessage
from lwsctl.diagnosis.ranks import is_placed
from lwsctl.model.diagnosis import FailedContainer, Person
from lwsctl.model.groups import Group, Rank
from lwsctl.model.health import Verdict
from lwsctl.views import recreations
from lwsctl.views.wording import duration, format_count

OTHERS_NAMED: Final = 5
RETRIED: Final = "CrashLoopBackOff"


def terminated_runs(observed: Observed) -> list[ContainerFailure]:
    """Return the relevant terminated runs. The first run explains the other runs."""
    return terminations.in_order(run for _, rank in ranks.members(observed) for run in rank.deaths)


def group_and_rank(observed: Observed, run: ContainerFailure) -> tuple[Group, Rank]:
    """Return the group and rank of a terminated run."""
    return next((group, rank) for group, rank in ranks.members(observed) if run in rank.deaths)


def failed_runs(observed: Observed) -> list[ContainerFailure]:
    """Return the runs that terminated with an error."""
    return [ended_run for ended_run in terminated_runs(observed) if ended_run.end.get("exitCode")]


def _crash_finding(
    observed: Observed,
    death: ContainerFailure,
    runs: list[ContainerFailure],
    statement: str,
    *,
    has_error: bool = False,
) -> Finding:
    """Return a finding about a failed run. Its sentence contains the statement and, if requested, the error."""
    group, rank = group_and_rank(observed, death)
    last_lines = podstate.last_lines(death.end)
    line = f"{rank.pod}, container {death.container}: {exits.describe_exit(death.end)}"
    ended = observed.time_since(death.end.get("finishedAt"))
    if not death.is_recorded:
        when = f", {duration(ended)} ago" if ended is not None else ""
        line += f"{when}; {format_count(death.restarts, 'restart')}"
    notes = [f"group {group.name} {recreations.sentence(group.recreations, observed.now)}"] if group.recreations else []
    keeps = not observed.commands.kubectl  # local clusters keep the log of the previous pod
    is_quoted = bool(last_lines) and not (death.is_recorded and keeps)
    is_earlier = death.is_over or (death.is_recorded and keeps)
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=statement + (ranks.quote_message(podstate.quotation(death.end)) if has_error else ""),
        statement=statement if has_error else "",
        evidence=(
            line,
            *(logerrors.quoted_errors(last_lines) if is_quoted else ()),
            *_other_crashes(runs),
            *notes,
        ),
        steps=(
            *exits.exit_advice(observed, rank, death),
            *exits.log_steps(observed, rank, death),
        ),
        failed_container=None
        if (is_quoted and not logerrors.needs_log(death.end))
        or (death.is_recorded and not keeps)
        or rank.object is None
        else FailedContainer(rank.object, death.container, is_earlier),
        recorded_run=logerrors.recorded_run(death),
    )


def _other_crashes(runs: list[ContainerFailure]) -> list[str]:
    """Return the other ranks that crashed, and whether they crashed later."""
    others = list(dict.fromkeys(run.pod for run in runs[1:] if run.pod != runs[0].pod))[:OTHERS_NAMED]
    if not others:
        return []
    if terminations.is_order_known(runs):
        return [f"terminated later: {', '.join(others)}"]
    return [f"also crashed: {', '.join(others)}; which one crashed first is unknown"]


@cause(
    code="LWS-E070",
    title="a container runs out of memory",
    meaning="A container was killed, because it exceeded its memory limit or its node ran out of memory.",
    remedy="Increase the memory limit, or reduce the memory usage of the program (batch size, context length, shared memory).",
    verdict=Verdict.CRASHING,
)
def find_out_of_memory(observed: Observed) -> Finding | None:
    """Find a container that was killed because it exceeded its memory limit."""
    runs = failed_runs(observed)
    killed = next((run for run in runs if run.end.get("reason") == exits.NO_MEMORY), None)
    if killed is None:
        return None
    limit = _memory_limit(observed, group_and_rank(observed, killed)[1], killed.container)
    bound = f"its memory limit of {limit}" if limit else "the memory of its node"
    text = f"container {killed.container} of pod {killed.pod} exceeded {bound} and was killed (OOMKilled)"
    return _crash_finding(observed, killed, [killed, *(run for run in runs if run is not killed)], text)


def _memory_limit(observed: Observed, rank: Rank, container: str) -> str:
    resources = exits.find_container(observed, rank, container).get("resources") or {}
    return str((resources.get("limits") or {}).get("memory") or "")


@cause(
    code="LWS-E068",
    title="an init container fails",
    meaning="An init container exits with an error, so the remaining containers of the pod are not started.",
    remedy="Read the log of the init container, and fix the error.",
    verdict=Verdict.CRASHING,
)
def find_failed_init_container(observed: Observed) -> Finding | None:
    """Find a failing init container, which prevents other containers from starting."""
    runs = [failed_run for failed_run in failed_runs(observed) if failed_run.is_init]
    if not runs:
        return None
    text = f"init container {runs[0].container} of pod {runs[0].pod} fails with {exits.describe_exit(runs[0].end)}"
    return _crash_finding(observed, runs[0], runs, text, has_error=True)


@cause(
    code="LWS-E071",
    title="a container crashes",
    meaning="A container exited with an error. The message shows the rank that exited first, because other ranks often exit as a result.",
    remedy="Read the last log lines, and correct the program, its arguments or its environment variables.",
    verdict=Verdict.CRASHING,
)
def find_crash(observed: Observed) -> Finding | None:
    """Find the first rank that crashed."""
    runs = failed_runs(observed)
    if not runs:
        return None
    first = runs[0]
    pods = len({run.pod for run in runs})
    text = f"container {first.container} of pod {first.pod} crashed{ranks.others_suffix(pods)} with {exits.describe_exit(first.end)}"
    return _crash_finding(observed, first, runs, text, has_error=True)


@cause(
    code="LWS-E074",
    title="a readiness gate is not satisfied",
    meaning="The containers are ready, but the condition that a readiness gate requires is not True.",
    remedy="Check the component that sets the condition, such as a load balancer controller.",
)
def find_false_readiness_gate(observed: Observed) -> Finding | None:
    """Find a readiness gate whose condition is not True."""
    for rank in observed.ranks_at(is_placed):
        pod = rank.object or {}
        gates = [str(gate.get("conditionType")) for gate in meta.spec(pod).get("readinessGates") or []]
        closed = [gate for gate in gates if not meta.is_condition_true(pod, gate)]
        if closed and meta.is_condition_true(pod, "ContainersReady"):
            return Finding(
                subject=ranks.pod_subject(rank),
                sentence=f"readiness gate {', '.join(closed)} of pod {rank.pod} is not satisfied, although all its containers are ready",
                evidence=(f"{rank.pod}: {rank.why or 'ContainersReady is True, Ready is False'}",),
                steps=(f"find out which component sets condition {closed[0]}, and why it is not True",),
            )
    return None


PROBE: Final = StageMessage(
    is_placed,
    r"Readiness probe (?:failed|errored)",
    "the readiness probe of pod {pod} fails{others}",
    ("{lws} logs {place}", "{lws} get {place} -o jsonpath='{{.spec.containers[*].readinessProbe}}'"),
)


@cause(
    code="LWS-E073",
    title="a readiness probe fails",
    meaning="The container is running, but its readiness probe fails.",
    remedy="Read the log of the rank. Check the path, port and timing of the probe.",
)
def find_unready_rank(observed: Observed) -> Finding | None:
    """Find a rank whose readiness probe fails. This is normal while the rank may be starting."""
    finding = PROBE(observed)
    if finding is None:
        return None
    rank = ranks.find_rank(observed, finding.subject)
    return replace(
        finding,
        sentence=finding.sentence + probekills.compare_port(rank, rank.why),
        verdict=startup_verdict(observed, rank),
    )


NO_SANDBOX: Final = Cause(
    code="LWS-E069",
    title="the network of a pod cannot be set up",
    meaning="The kubelet cannot create the pod sandbox, because the network plugin or the container runtime fails.",
    person=Person.ADMINISTRATOR,
    remedy="Check the network plugin and the container runtime on the node.",
    find=StageMessage(
        is_placed,
        r"(?i)failed to create pod sandbox|network plugin|FailedCreatePodSandBox",
        "the network of pod {pod} cannot be set up on node {node}{others}",
        ("{lws} describe {place}", "{anywhere} nodes {node}"),
    ),
)
