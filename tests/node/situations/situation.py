"""A situation on a real node, and what the product must say of it in every sample. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from tests.node.objects import RESOURCES, WAIT, container, leaderworkerset, pod

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

STARTING: Final = frozenset({"LWS-E091", "LWS-E101", "LWS-E109"})
"""The causes before a situation shows itself."""

AS_DESIRED: Final = frozenset({"healthy", "complete"})
STUCK: Final = frozenset({"stuck"})
CRASHING: Final = frozenset({"crashing", "progressing"})
"""The verdicts of a program that exits: the first failure is progress."""
RECREATED: Final = frozenset({"LWS-E080", "LWS-E081"})
AWAITS: Final = "next attempt"
"""The words about a group that failed, and has not been recreated yet."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A LeaderWorkerSet in a namespace of its own, with what surrounds it."""

    template: JSONObject
    """The pod template of all ranks."""

    codes: frozenset[str]
    """The causes that are true once the situation shows itself."""

    words: tuple[str, ...] = ()
    """The words of the diagnosis in each sample with such a cause."""

    verdicts: frozenset[str] = STUCK

    advice: tuple[str, ...] = ()
    """Further words, except where the group has just been recreated: then the next attempt is awaited."""

    printed: str = ""
    """The line of a program that the diagnosis of this set alone quotes, which reads logs."""

    never: tuple[str, ...] = ()
    """Words that no diagnosis may contain."""

    replicas: int = 1
    size: int = 2
    objects: tuple[JSONObject, ...] = ()
    """Objects that are there before, also of the whole cluster; they are deleted at the end."""

    then: tuple[tuple[str, ...], ...] = ()
    """The commands of kubectl that run once the set is available."""

    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Labels of the namespace."""

    before: frozenset[str] = STARTING
    """Further causes that are true before the situation shows itself."""

    keeps_running: bool = False
    """Whether its pods run, so that it is available all the time."""

    gives_up: bool = True
    """Whether `lws wait --fail-fast` gives up."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The diagnosis of a situation at one moment; it is available if its status was both before and afterwards."""

    seconds: float
    verdict: str
    code: str
    text: str
    is_available: bool


def sample(seconds: float, item: JSONObject, *statuses: JSONObject) -> Sample:
    """Return the sample of a diagnosis in JSON, and of the LeaderWorkerSet before and after it."""
    available = all(meta.is_condition_true(obj, "Available") for obj in statuses)
    return Sample(seconds, item["verdict"], item["code"] or "", text_of(item), available)


def text_of(item: JSONObject) -> str:
    """Return the text of a diagnosis in JSON."""
    return "\n".join([item["sentence"], *item["evidence"], *item["nextSteps"]])


def errors(situation: Situation, samples: Sequence[Sample]) -> list[str]:
    """Return the wrong samples, as text, in order of time.

    Before the situation shows itself, the set may be healthy. Afterwards it must have one of the causes at any moment.

    >>> crash = Situation({}, frozenset({"E1"}), ("exit code 5",), CRASHING)
    >>> right = Sample(2, "crashing", "E1", "exit code 5", False)
    >>> errors(crash, [Sample(1, "healthy", "", "", True), right])
    []
    >>> errors(crash, [right, Sample(3, "healthy", "", "", True)])[0]
    "3 s: healthy, no cause: ''"
    """
    shown = next((index for index, one in enumerate(samples) if one.code in situation.codes), None)
    if shown is None:
        last = samples[-1] if samples else None
        return [f"never {sorted(situation.codes)}, at last {last}"]
    early = [one for one in samples[:shown] if one.code not in situation.before and one.verdict not in AS_DESIRED]
    wrong = [one for one in samples[shown:] if not is_right(situation, one)]
    forbidden = [one for one in samples for word in situation.never if word in one.text]
    return [describe(one) for one in [*early, *wrong, *forbidden]]


def is_right(situation: Situation, one: Sample) -> bool:
    """Return whether a sample names the cause, with its words, as not available."""
    if one.code not in situation.codes or one.verdict not in situation.verdicts:
        return False
    # A group that was recreated is available until its program fails again; one that waits for it is not.
    may_be_available = situation.keeps_running or (one.verdict in CRASHING and AWAITS not in one.text)
    words = situation.words if one.code in RECREATED else (*situation.words, *situation.advice)
    return (may_be_available or not one.is_available) and all(word in one.text for word in words)


def describe(one: Sample) -> str:
    """Return a wrong sample as text."""
    available = ", Available" if one.is_available and one.verdict not in AS_DESIRED else ""
    return f"{one.seconds:.0f} s: {one.verdict}, {one.code or 'no cause'}{available}: {one.text!r}"


def codes(*numbers: int) -> frozenset[str]:
    """Return the codes of causes.

    >>> codes(70)
    frozenset({'LWS-E070'})
    """
    return frozenset(f"LWS-E{number:03}" for number in numbers)


def main(script: str = WAIT, **fields: Any) -> JSONObject:
    """Return a pod template of one container that runs a script."""
    return pod(container(script, **fields))


def of_rank_1(script: str) -> str:
    """Return a script that only rank 1 runs, before it waits."""
    return f'if [ "$LWS_WORKER_INDEX" = 1 ]; then {script}; fi; {WAIT}'


def asking(**amounts: str) -> JSONObject:
    """Return a pod template whose container requests further resources; `_` stands for `-`."""
    named = {name.replace("_", "-"): amount for name, amount in amounts.items()}
    return main(resources={kind: {**RESOURCES[kind], **named} for kind in ("requests", "limits")})


def sets(table: Mapping[str, Situation]) -> Iterator[tuple[str, JSONObject]]:
    """Yield name and LeaderWorkerSet of each situation."""
    for name, one in table.items():
        obj = leaderworkerset(name, one.template, replicas=one.replicas, size=one.size)
        yield name, {**obj, "metadata": {**obj["metadata"], "labels": {LABEL: "true"}}}


LABEL: Final = "situation"
