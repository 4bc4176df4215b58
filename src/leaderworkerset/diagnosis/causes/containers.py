"""Containers that ran: crashes, lack of memory, probes and gates. Pure.

Of several ranks that crashed, the cause is the one that explains the others (`views.deaths`); if that is not certain, the
text says so. A group that failed again after its recreation is stuck for the same reason at every moment, also while it
starts again and no pod shows it: until it is ready.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels, runsettings
from leaderworkerset.diagnosis import ranks
from leaderworkerset.diagnosis.causes.starts import warming
from leaderworkerset.diagnosis.finding import Cause, Finding, Verdict, cause
from leaderworkerset.diagnosis.observed import Observed
from leaderworkerset.diagnosis.patterns import Told
from leaderworkerset.diagnosis.ranks import is_placed
from leaderworkerset.rendezvous.obstacles import Obstacle
from leaderworkerset.views import deaths, recreations
from leaderworkerset.views.deaths import Death
from leaderworkerset.views.groups import Group, Rank
from leaderworkerset.views.masking import Mask
from leaderworkerset.views.outcome import FailedContainer
from leaderworkerset.views.wording import counted, duration

OTHERS_NAMED: Final = 5
NO_MEMORY: Final = "OOMKilled"
RETRIED: Final = "CrashLoopBackOff"
REFUSED: Final = re.compile(r"(?i)[\w\]]:([0-9]{1,5})(?![\w\]]|:[\w:]).*connection refused")
LISTENS: Final = re.compile(r"; (the pod listens on (?:no port|[0-9, ]+))")
KILLED: Final = 137
SIGNALS: Final = {KILLED: "SIGKILL", 143: "SIGTERM"}
"""The signals by which somebody else ends a program, by its exit code."""

NOT_FOUND: Final = 127
MISSING: Final = frozenset({2, NOT_FOUND})
"""Exit codes of interpreters and shells that do not find the file or program they are given."""

OF_THE_MACHINE: Final = "host://"
"""How the imageID of a container begins that runs with the programs of this machine, as its image is mapped to nothing."""

ON_PURPOSE: Final = "host"
"""The image that means the programs of this machine."""


def ended_runs(observed: Observed) -> list[Death]:
    """Return the runs that ended and may still matter, the one that explains the others first."""
    return deaths.in_order(run for _, rank in _members(observed) for run in rank.deaths)


def _members(observed: Observed) -> Iterator[tuple[Group, Rank]]:
    """Yield the selected ranks; one that is ready may be the one that failed before, and will fail again."""
    for group in observed.view.groups:
        yield from ((group, rank) for rank in group.ranks if observed.rank in (None, rank.index))


def _place(observed: Observed, run: Death) -> tuple[Group, Rank]:
    return next((group, rank) for group, rank in _members(observed) if run in rank.deaths)


def failed_runs(observed: Observed) -> list[Death]:
    """Return those that ended with an error."""
    return [one for one in ended_runs(observed) if one.end.get("exitCode")]


def _tell(observed: Observed, death: Death, found: list[Death], sentence: str) -> Finding:
    group, rank = _place(observed, death)
    said = podstate.last_lines(death.end)
    line = f"{rank.pod}, container {death.container}: {_end(death.end)}"
    ended = observed.since(death.end.get("finishedAt"))
    if not death.is_recorded:
        when = f", {duration(ended)} ago" if ended is not None else ""
        line += f"{when}; {counted(death.restarts, 'restart')}"
    told = [f"group {group.name} {recreations.sentence(group.recreations, observed.now)}"] if group.recreations else []
    container = f" -c {death.container}" if len(list(ranks.statuses(rank))) > 1 else ""
    words = f"logs {observed.view.name}/{rank.place}{container}"
    keeps = not observed.commands.kubectl  # a cluster of this machine keeps the log of the pod before
    is_quoted = bool(said) and not (death.is_recorded and keeps)
    is_earlier = death.is_over or (death.is_recorded and keeps)
    return Finding(
        subject=ranks.subject(rank),
        sentence=sentence,
        evidence=(
            line,
            *(f"  {ranks.quote(one)}" for one in Mask().lines(said)[-5:] if is_quoted),
            *_beside(found),
            *told,
        ),
        steps=(
            *_advice(observed, rank, death),
            observed.lws(f"{words}{' --previous' if is_earlier else ' --follow' if death.is_recorded else ''}"),
        ),
        log=None
        if is_quoted or (death.is_recorded and not keeps) or rank.object is None
        else FailedContainer(rank.object, death.container, is_earlier),
    )


def _advice(observed: Observed, rank: Rank, death: Death) -> Iterator[str]:
    """Yield what an exit code means: who sent the signal, or that a program or file is missing."""
    code = death.end.get("exitCode")
    declared: JSONObject = next((one for one in _containers(rank) if one.get("name") == death.container), {})
    if signal := _signal(death.end):
        probes = [kind for kind in ("liveness", "startup") if declared.get(f"{kind}Probe")]
        events = observed.lws(f"events {observed.view.name}/{rank.place} --warnings")
        memory = f", or from the kernel if node {rank.node} was out of memory (dmesg there)" if code == KILLED else ""
        probed = f", or from its {probes[0]} probe: {events}" if probes else "; no probe ends this container"
        yield f"{signal} came from somebody, or from what stopped its container{memory}{probed}"
    status: JSONObject = next((one for one in ranks.statuses(rank) if one.get("name") == death.container), {})
    image = declared.get("image")
    obstacle = next((one for one in Obstacle if one == code), None)
    is_unmapped = str(status.get("imageID")).startswith(OF_THE_MACHINE)
    if code in MISSING and is_unmapped and image != ON_PURPOSE:
        yield f"if it lacks a file or program: image {image} is mapped to nothing, so it ran in / of this machine; map it: --image {image}=DIR, or rehearse it: --stub={image}"
    elif obstacle is not None and _is_rendezvous(declared, death.end):
        yield f"exit code {code} of the rendezvous means: {obstacle.words}; {obstacle.advice}"
    elif code == NOT_FOUND and not is_unmapped:
        yield f"exit code 127 means that a program was not found: image {image} lacks it, or it is not on PATH there"


def _is_rendezvous(declared: JSONObject, end: JSONObject) -> bool:
    """Return whether the code is one of the rendezvous: by the command of the container, or what it said at its end."""
    words = [*(declared.get("command") or []), *(declared.get("args") or []), end.get("message")]
    return any("rendezvous" in str(word) for word in words)


def _containers(rank: Rank) -> list[JSONObject]:
    spec = meta.spec(rank.object or {})
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def _signal(end: JSONObject) -> str | None:
    return SIGNALS.get(end.get("exitCode") or 0) if end.get("reason") != NO_MEMORY else None


def _beside(found: list[Death]) -> list[str]:
    """Return the other ranks that crashed, and whether they did so later."""
    others = list(dict.fromkeys(one.pod for one in found[1:] if one.pod != found[0].pod))[:OTHERS_NAMED]
    if not others:
        return []
    if deaths.is_order_known(found):
        return [f"ended later: {', '.join(others)}"]
    return [f"crashed as well: {', '.join(others)}; which one was the first is not known after so many restarts"]


def _end(end: JSONObject) -> str:
    signal = _signal(end)
    words = ", ".join(filter(None, (end.get("reason"), signal and f"killed by {signal}")))
    return f"exit code {end.get('exitCode')}{f' ({words})' if words else ''}"


@cause(
    code="LWS-E070",
    title="a container runs out of memory",
    meaning="A container used more memory than its limit, or than its node has, and was killed.",
    remedy="Raise the memory limit, or let the program use less (batch size, context length, shared memory).",
)
def out_of_memory(observed: Observed) -> Finding | None:
    """Find a container that was killed because it exceeded its memory limit."""
    found = failed_runs(observed)
    killed = next((one for one in found if one.end.get("reason") == NO_MEMORY), None)
    if killed is None:
        return None
    limit = _memory_limit(_place(observed, killed)[1], killed.container)
    said = f"its limit of {limit}" if limit else "what its node has"
    text = f"container {killed.container} of pod {killed.pod} used more memory than {said}, and was ended (OOMKilled)"
    return _tell(observed, killed, [killed, *(one for one in found if one is not killed)], text)


def _memory_limit(rank: Rank, container: str) -> str:
    own: JSONObject = next((one for one in _containers(rank) if one.get("name") == container), {})
    return str(((own.get("resources") or {}).get("limits") or {}).get("memory") or "")


@cause(
    code="LWS-E068",
    title="an init container fails",
    meaning="An init container ends with an error, and the containers after it are not started.",
    remedy="Read its log, and correct it.",
)
def init_fails(observed: Observed) -> Finding | None:
    """Find an init container that fails, so that no other container starts."""
    found = [one for one in failed_runs(observed) if one.is_init]
    if not found:
        return None
    text = f"init container {found[0].container} of pod {found[0].pod} fails with {_end(found[0].end)}"
    return _tell(observed, found[0], found, text)


@cause(
    code="LWS-E071",
    title="a container crashes",
    meaning="A program ends with an error. Of several ranks the one that ended first is named: others often end because it did.",
    remedy="Read its last lines and correct the program, its arguments or its environment.",
)
def crashes(observed: Observed) -> Finding | None:
    """Find the rank that crashed first."""
    found = failed_runs(observed)
    if not found:
        return None
    first = found[0]
    pods = len({one.pod for one in found})
    text = f"container {first.container} of pod {first.pod} crashed{ranks.others(pods)} with {_end(first.end)}"
    return _tell(observed, first, found, text + ranks.quote(podstate.quotation(first.end)))


@cause(
    code="LWS-E072",
    title="a liveness or startup probe fails",
    meaning="A probe fails so often that the container is killed and restarted.",
    remedy="Find out why the program does not answer; give slow starts a startupProbe with enough time.",
)
def killed_by_probe(observed: Observed) -> Finding | None:
    """Find a container that is restarted repeatedly because its liveness or startup probe fails."""
    recorded = [_place(observed, one)[1] for one in ended_runs(observed) if one.is_recorded]
    for rank in (*observed.at(is_placed), *recorded):
        for text in ranks.messages(observed, rank, "Unhealthy", of_any=rank in recorded):
            match = re.match(r"(Liveness|Startup) probe (?:failed|errored)", text)
            if match and (rank.restarts or match[1] == "Startup" or rank in recorded):
                return Finding(
                    subject=ranks.subject(rank),
                    sentence=f"the {match[1].lower()} probe of pod {rank.pod} fails: {ranks.quote(LISTENS.sub('', text))}{_refused_port(rank, text)}",
                    evidence=(f"{rank.pod}: {counted(rank.restarts, 'restart')}, state {rank.state}",),
                    steps=(
                        observed.lws(f"logs {observed.view.name}/{rank.place}"),
                        f"if it needs more time, give the template of {observed.view.name} a startupProbe that waits longer",
                    ),
                )
    return None


@cause(
    code="LWS-E075",
    title="the program ends though it should run",
    meaning="A program ended with exit code 0. Ranks are meant to run until they are stopped.",
    remedy="Let the program continue to run. For work that ends, set the annotation "
    f'`{labels.RUN_TO_COMPLETION}: "true"` of the LeaderWorkerSet, use a Job, or `lws run --until done`.',
)
def has_ended(observed: Observed) -> Finding | None:
    """Find a rank whose containers ended with exit code 0, although it should continue to run."""
    done = [(group, rank) for group, rank in observed.unready if is_placed(rank) and _is_done(rank)]
    ended = [(group, rank) for group, rank in done if not _waits_for_another(group, {one.pod for _, one in done})]
    ended = ended or [
        _place(observed, one) for one in ended_runs(observed) if one.is_recorded and not one.end["exitCode"]
    ]
    if not ended:
        return None
    group, rank = ended[0]
    evidence = [f"{rank.pod}: {rank.state}, {counted(rank.restarts, 'restart')}"]
    if group.recreations is not None:
        evidence.append(f"group {group.name} {recreations.sentence(group.recreations, observed.now)}")
    if runsettings.read(meta.annotations(observed.view.object)).completes:
        return Finding(
            subject=ranks.subject(rank),
            sentence=f"the program of pod {rank.pod} ended with exit code 0{ranks.others(len(ended))}; the group is complete once its leader has",
            evidence=tuple(evidence),
            steps=(observed.lws(f"wait {observed.view.name} --for done"),),
            verdict=Verdict.PROGRESSING,
        )
    return Finding(
        subject=ranks.subject(rank),
        sentence=f"the program of pod {rank.pod} ended with exit code 0{ranks.others(len(ended))}, and is started again",
        evidence=tuple(evidence),
        steps=(
            observed.lws(f"logs {observed.view.name}/{rank.place}"),
            f"let the program run until it is stopped; for work that ends: annotation {labels.RUN_TO_COMPLETION}, or a Job",
        ),
    )


def _waits_for_another(group: Group, done: set[str]) -> bool:
    """Return whether a group waits to be recreated because of a pod that ended otherwise than with exit code 0."""
    told = group.recreations
    return told is not None and told.is_waiting and told.failed_pod not in done


def _is_done(rank: Rank) -> bool:
    """Return whether a container ended with exit code 0, and has not been restarted yet."""
    for one in ranks.statuses(rank):
        state, last = one.get("state") or {}, (one.get("lastState") or {}).get("terminated") or {}
        end = state.get("terminated") or (last if (state.get("waiting") or {}).get("reason") == RETRIED else {})
        if end.get("exitCode") == 0 and rank.state in {"Completed", RETRIED, "NotReady"}:
            return True
    return False


@cause(
    code="LWS-E074",
    title="a readiness gate is closed",
    meaning="The containers are ready, but a condition that the pod names as readiness gate is not True.",
    remedy="Check the component that sets that condition, for example a load balancer's controller.",
)
def gate_is_closed(observed: Observed) -> Finding | None:
    """Find a readiness gate whose condition is not True."""
    for rank in observed.at(is_placed):
        pod = rank.object or {}
        asked = [str(one.get("conditionType")) for one in meta.spec(pod).get("readinessGates") or []]
        closed = [gate for gate in asked if not meta.is_condition_true(pod, gate)]
        if closed and meta.is_condition_true(pod, "ContainersReady"):
            return Finding(
                subject=ranks.subject(rank),
                sentence=f"readiness gate {', '.join(closed)} of pod {rank.pod} is not open, though its containers are ready",
                evidence=(f"{rank.pod}: {rank.why or 'ContainersReady is True, Ready is False'}",),
                steps=(f"find out what sets condition {closed[0]}, and why it does not",),
            )
    return None


PROBE: Final = Told(
    is_placed,
    r"Readiness probe (?:failed|errored)",
    "the readiness probe of pod {pod} fails{others}",
    ("{lws} logs {place}", "{lws} get {place} -o jsonpath='{{.spec.containers[*].readinessProbe}}'"),
)


@cause(
    code="LWS-E073",
    title="a readiness probe fails",
    meaning="The program runs, and its readiness probe says that it is not ready.",
    remedy="Read the log of the rank; check path, port and times of the probe.",
)
def unready(observed: Observed) -> Finding | None:
    """Find a rank whose readiness probe fails; while it may still be loading, that is normal."""
    found = PROBE(observed)
    if found is None:
        return None
    rank = ranks.named(observed, found.subject)
    return replace(found, sentence=found.sentence + _refused_port(rank, rank.why), verdict=warming(observed, rank))


def _refused_port(rank: Rank, message: str) -> str:
    """Compare the port of a probe that was refused with those that the containers declare, and the pod listens on."""
    refused, listens = REFUSED.search(message[: ranks.QUOTED]), LISTENS.search(message[: ranks.QUOTED])
    if refused is None:
        return ""
    containers = meta.spec(rank.object or {}).get("containers") or []
    ports = sorted({str(port["containerPort"]) for one in containers for port in one.get("ports") or []})
    others = f", its containers declare {', '.join(ports)}" if ports and refused[1] not in ports else ""
    return f": nothing listens on port {refused[1]}{others}{f'; {listens[1]}' if listens else ''}"


NO_SANDBOX: Final = Cause(
    code="LWS-E069",
    title="the pod's network cannot be set up",
    meaning="The kubelet cannot create the sandbox of a pod: the network plug-in or the container runtime fails.",
    remedy="Check the network plug-in on that node.",
    find=Told(
        is_placed,
        r"(?i)failed to create pod sandbox|network plugin|FailedCreatePodSandBox",
        "the network of pod {pod} cannot be set up on node {node}{others}",
        ("{lws} describe {place}", "{anywhere} nodes {node}"),
    ),
)
